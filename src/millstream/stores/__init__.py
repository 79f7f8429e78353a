"""The shard contract, its backends, and the store's directory.

The engine depends on `contract` only.

contract         an ordered map from bytes to bytes that remembers one batch back
memory           the contract in its plainest form, for tests
lmdb             the embedded default; environment: opening, growing and forking LMDB
layered          lmdb with one flush for many batches; soft: the records of its unflushed layer
absent_shard     a shard that a partial mirror does not have

Rows:

layout           the keys of a shard's rows, and the format of a slate's row
rows, shard_rows rows and journals as bytes, and reading and writing them in LMDB
recent_rows      keeps the rows that change now together in a large shard
checks           their checksums
read_rows        keeps what was read, for the commit that replaces it
ranks            the order of slates where room is limited
shard_writer     a new shard from rows
commit_threads   commits several shards in parallel

The directory:

home, store_lock its files, and the lock that one driver holds
progress         the record that commits a batch; function_counts: what it counts
trouble          the sinks that fail now
package_files    packages of code, for agents
reader, tables   read slates and tables from outside, as of one batch
vacuum           rewrites the shards without what has expired

`shared/` is the same contract over a place that many hosts see. `integrity/` checks whole shards
for damage.
"""
