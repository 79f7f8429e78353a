"""What a task does with events and shards: pure, no Spark.

plan      the workflow, numbered, with where each emitted event goes
columns   many deliveries at once, and their bytes
gate      events of one function in one shard that wait for the horizon
combining an aggregate's events, merged before they are sent on
counting  the same where they are only counted
aggregate_cell  an aggregate in one shard: partials merged into slates
cell      one function in one shard during one batch: slates, timers, waiting, changes
ordering  grouped by key, each key in content order
feeder    feeding one key's events and timers to an update
readback  the slate as the next event should find it
router    where emitted events go: fused maps, later layers, feedback, outputs
intake    records of a source become events
layers    running layers over shards, and the one-task batch
horizon   the decisions about time: how far, what is due, which lane
beat      what a batch is told before it runs
effects   what a function yields, applied
points    where a fault run may strike
progress  what the driver knows after a batch
"""
