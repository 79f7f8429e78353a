"""Backups of a store, and restoring them.

record              the record of a backup: the chunks that make up each shard and file
chunks              divides content into chunks, which are stored once for all backups
backup              backs up a store, which may run meanwhile
mirror_extras       adds to a mirror of a shared store what a backup needs besides
restoration         restores a backup to a store in a folder
place_restoration   restores a backup to a shared store
"""
