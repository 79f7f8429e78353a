"""Kafka, for sources, sinks and the server: the only package that imports its client library.

- `client`: sets up a client from the options of an address, secrets included.
- `limited_calls`: ends calls of the client library in time.
- `topic`: parses the address of a source.
- `topic_watch`: follows the end offsets of a topic.
- `offset_ranges`: reads ranges of offsets, in tasks.
- `record_sizes`: estimates the size of records before any was read.
- `topic_producer`: sends records, for the server.
- `sink_topic`: parses the address of a sink.
- `batch_producer`: sends batches, each exactly once, for sinks.
"""
