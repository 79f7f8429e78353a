"""The only place that imports pyspark: sources' offsets, lanes, tasks, and the query.

session     a quiet Spark session with the settings that the measurements chose
quiet       the noise of a starting JVM, kept off the terminal
heartbeat   the one streaming source: it plans batches and carries their clock
offsets     Spark's checkpoint files, as far as Millstream must know them
job         what a batch's tasks are sent
pickling    how a user's functions and slate classes travel
worker      what runs inside Spark's Python workers
lanes       a batch as one task, or as a shuffled plan
publisher   staged output to the sinks
continuing  whether a changed application can go on from its store
report      what a run tells whoever watches it
query       the driver
dump        an update's slates as part files, in parallel
together    the shards as of one batch, in many tasks at once
"""
