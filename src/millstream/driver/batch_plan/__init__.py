"""What the next batch takes, how far it goes, and on which hosts its tasks run."""
