"""The user's databases, for sinks and lookups: their addresses and connections.

options.py     parses and checks the options of an address; secrets
postgres.py    PostgreSQL, through psycopg (extra `postgres`)
cassandra.py   Cassandra, through cassandra-driver (extra `cassandra`)
"""
