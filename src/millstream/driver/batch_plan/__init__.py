"""The plan of the next batch: its input, how far it goes, and the hosts of its tasks."""
