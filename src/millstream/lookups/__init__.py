"""Tables of other systems that maps read.

lookup.py        the lookup that a user declares and reads, with its cache
backends.py      the backends: SQLite, PostgreSQL, Cassandra, a plain function
answer_codec.py  encodes the answers for the cache
"""
