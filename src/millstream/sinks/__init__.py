"""The sinks of events: files, logs and tables, to which each batch is published whole, once.

columns          the columns of a sink's rows
files            a directory of files; row_files: their formats; parquet_columns: typed columns
slate_files      files of slates, for a dump
log_sink         an event log
kafka_sink       a topic
tables           what all tables share; table_layout: their columns
sqlite_table, postgres_table, cassandra_table
"""
