"""The engine: what a task does with events and shards. Pure, without Spark.

plan            numbers the workflow's functions and streams, and knows where emitted events go
arrow_arrays    converts lists and arrays into one another, without pandas
columns         holds many deliveries at once, and packs them to bytes
gate            holds back events of one function in one shard until the horizon has passed them
combiner        merges an aggregate's events before they are sent on
key_counts      does the same where events are only counted
aggregate_cell  merges partials into the slates of an aggregate in one shard
cell            runs one function in one shard during one batch: slates, timers, waiting, changes
key_shards      computes the shards of a column of keys
content_order   groups events by key, each key in content order
feeder          feeds one key's events and timers to an update
readback        gives a slate the form in which the next event should find it
router          sends emitted events on: to fused maps, later layers, feedback, outputs
intake          turns records of a source into events
layers          runs layers over shards, and the one-task batch
horizon         decides about time: how far it has come, what is due, which lane
beat            holds what a batch's tasks know about time
effects         applies what a function yields
points          names the points at which a fault run may strike
progress        computes what the driver knows after a batch
"""
