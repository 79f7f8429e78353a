"""Events that another program's batches pour into a source, each exactly once."""
