"""Backups of a store, and restoring them.

record              the record of a backup: the chunks that make up each shard and file
chunks              divides content into chunks, which are stored once for all backups
backup              backs up a store, also while its application runs
mirror_extras       adds what a backup needs to a mirror of a shared store
restoration         restores a backup to a store in a folder
place_restoration   restores a backup to a shared store
"""
