"""The process on a log server that makes panes where the logs are (iMR, sections 2.2 and 4).

No Spark, no JVM, and no library but msgspec. Reading:

- `options`: what it is told when it starts
- `files`, `listing`, `following`: the files of a log as they grow, are rotated, cut off and deleted
- `packed_files`: rotations that were compressed
- `framing`, `lines`, `stamping`: from lines to a record and its time
- `slicing`, `line_times`, `combining`, `reading`, `open_panes`: from lines to panes
- `pacing`, `rounds`, `remaking`, `seeking`: which panes are made at all, and in which order
- `limits`, `memory`: when reading waits
- `restart`, `state`, `dead_letters`: what is kept on disk
- `node_log`, `pane_order`, `shared_reading`: one reading for all jobs that read a log alike
- `job_panes`, `sent_panes`: one job's panes over it, and what it has told
- `agent_job`, `job_orders`: one job with all that it needs; jobs that come and go
- `looping`, `surroundings`, `agent`: the loop, what its parts share, and all of it together
- `summary`: what is said at the end

Sending:

- `bodies`, `outbox`: panes as they are sent, and kept until the root has them
- `link_health`, `delivery`: what goes where, and when (pure)
- `wire`, `ways`, `trying`, `sending`: to the root or a parent, again and again
- `told`: what is heard of the job
- `merging`, `parent`, `serving`: an agent that merges the panes of others
- `membership`, `addresses`: a member of the tree that the root builds
- `job_hosting`: the jobs that the root wants run here
- `network`: all of this together
"""
