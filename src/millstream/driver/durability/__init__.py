"""When committed batches are safe: flushes to a disk, and commits and bases in a place."""
