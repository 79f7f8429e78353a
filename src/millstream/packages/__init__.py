"""Signed packages: the code of a Python job, for agents on nodes that do not have it.

- `manifest`: a package's description of itself, and the limits that it must stay within
- `archive`: its bytes, a zip that is the same for the same content
- `keys`: Ed25519 keys, and the packages that the operator of a node allows
- `package`: a package whose bytes were checked, hash by hash, before any use
- `app_files`: the files of an application and the local modules that it imports
- `package_loader`: loads a checked package as an application, isolated from other loaded packages
- `node_jobs`: turns what a root publishes into a job that runs on a node
- `runtime_archive`: an application with all of its libraries, for executors that have only Python

No code of a package is executed, and no file of it is written, before all of it is verified.
"""
