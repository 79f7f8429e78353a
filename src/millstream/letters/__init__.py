"""Events that were set aside (dead letters, late, dropped and diverted events), and how to retry
them.

Each is in an event log of the store. To **retry** one is to append it to another log,
`deadletters.retried`, which batches take in like a source. `selection` filters the events,
each of which is a `letter_row`, `retry_log` appends each once, and `engine.retry_intake` gives them
to their functions. `retried_numbers` are those that were retried.
"""
