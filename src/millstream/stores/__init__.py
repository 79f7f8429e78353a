"""The shard contract and its backends.

The engine depends on `contract` only. `memory` is the backend for tests, `lmdb` the embedded
default, and `layered` is `lmdb` with one flush for many batches. `shared/` is the same over a
place that many hosts see. `integrity/` checks whole shards for damage.
"""
