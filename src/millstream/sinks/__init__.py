"""The sinks of events: files, logs and tables, to which each batch is published whole, once."""
