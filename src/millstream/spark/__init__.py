"""The only place that imports pyspark: sources' offsets, lanes, tasks, and the query.

session     a quiet Spark session with the settings that the measurements chose
heartbeat   the one streaming source: it plans batches and carries their clock
job         what a batch's tasks are sent
worker      what runs inside Spark's Python workers
lanes       a batch as one task, or as a shuffled plan
publisher   staged output to the sinks
query       the driver
"""
