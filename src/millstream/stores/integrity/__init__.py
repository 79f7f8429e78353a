"""Checks whole shards for damage: `shard_check` row by row, with the list of `free_pages`;
`shard_checks` does so in a child process, which a damaged page may end.
"""
