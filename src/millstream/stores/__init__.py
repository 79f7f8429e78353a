"""The shard contract and its backends.

`contract` is what the engine knows; `memory` is for tests, `lmdb` the embedded default, `layered`
the same with flushes of many batches at once.
"""
