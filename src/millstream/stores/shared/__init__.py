"""The shared store: all durable data is in a place; hosts work on copies of it (docs/design).

changes_object    the rows that a task changed, as an object of the place
manifest          the objects that make up each shard: bases, packs, changes
commit_record     the content of a commit
commit_log        reads and creates commits
segment_reader    reads the changes of a shard from segments
shard_base        writes and reads bases
shard_copy        a copy of a shard, which records the changes that it has
copies            the copies of a host, brought to the change that a task builds on
shared_store      the store as a task sees it
"""
