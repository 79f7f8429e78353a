"""The shared store: all durable data is in a place; hosts work on copies of it (docs/design).

changes_object    the rows that a task changed, as an object of the place; packs of many
manifest          the objects that make up each shard: bases, packs, changes
commit_record     the content of a commit
commit_log        reads and creates commits
segment_reader    reads the changes of a shard from segments
shard_base        writes and reads bases
shard_copy        a copy of a shard, which records the changes that it has
copies            the copies of a host, brought to the change that a task builds on
copy_restore      restores a copy from the objects of the place
shared_store      the store as a task sees it

The driver:

shared_home       its working folder, laid out like a local store
leader_beat       its heartbeat
staged_objects    output that is too large for a commit
place_sweep       deletes what no commit names

Readers on any host:

store_mirror      a folder that looks like a local store and follows a shared one
mirror_folder     the folders of a host for mirrors; mirror_record: what one follows
follower          keeps a mirror at the last commit; follow_pace: how often it looks
follower_process  the process of a follower
"""
