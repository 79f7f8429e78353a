"""Checks whole shards for damage."""
