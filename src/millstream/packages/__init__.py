"""Signed packages: the code of a Python job, for agents on nodes that have none of it.

- `manifest`: what a package says of itself, and the limits that it must keep to
- `archive`: its bytes, a zip that is the same for the same content
- `keys`: Ed25519 keys, and which packages the operator of a node allows
- `package`: bytes that were checked, hash by hash, before anything of them is used
- `collecting`: the files of an application and the modules beside it that it imports
- `loading`: a checked package as an application, apart from every other that is loaded
- `node_jobs`: from what a root publishes to a job that runs on a node

Nothing of a package is executed, and no file of it is written, before all of it was verified.
"""
