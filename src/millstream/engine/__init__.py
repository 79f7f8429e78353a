"""The engine: what a task does with events and shards. Pure, without Spark.

plan            numbers the workflow's functions and streams, and knows where emitted events go
columns         holds many deliveries at once; laid_values: their values as columns of numbers
frames          packs them to bytes, for other tasks
intake          turns records of a source into events; retry_intake: retried letters
router          sends emitted events on: to fused maps, later layers, feedback, outputs
effects         applies what a function yields
sink_rows       the rows for sinks
combiner        merges an aggregate's events before they are sent on
key_counts      counts and adds up by key, for aggregates of which no more is needed
key_shards      the shards of many keys
layers          runs layers over shards, and the one-task batch
horizon         decides about time: how far it has come, what is due, which lane
final_phase     ends event time
beat            holds what a batch's tasks know about time
points          names the points at which a fault run may strike
progress        computes what the driver knows after a batch; latency: how long events took

In cells/, one function in one shard during one batch:

cell            slates, timers, waiting, changes; slate_rows: the rows of slates and entries;
                change_rows: the changes that it publishes
aggregate_cell  merges partials into the slates of an aggregate
table_cell      one call for all keys of a step; slate_columns: the rows of many slates at once
gate            holds back events until the horizon has passed them
queue           keeps events that wait because admission took no more
content_order   groups events by key, each key in content order
feeder          feeds one key's events and timers to an update; timed_feed: with timers, while all
                goes well; key_run: the careful path
readback        gives a slate the form in which the next event should find it
timer_index     the timers of one update, in order of time
room, priority  limit the slates that an update keeps; sweep deletes expired ones
"""
