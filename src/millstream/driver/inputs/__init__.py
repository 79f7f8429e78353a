"""The records of sources, from files, event logs and Kafka topics."""
