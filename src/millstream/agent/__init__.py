"""The process on a log server that makes panes where the logs are (iMR, sections 2.2 and 4).

The agent needs no Spark, no JVM, and no library but msgspec. Modules that read:

- `options`: the settings that an agent starts with
- `files`, `log_file_list`, `log_follower`: the files of a log as they grow, are rotated, truncated,
  deleted
- `packed_files`: rotated files that were compressed
- `multiline_records`, `lines`, `first_seen_times`: from lines to a record and its time
- `line_slices`, `line_times`, `pane_combiner`, `pane_reader`, `open_panes`: from lines to panes
- `pane_pace`, `rounds`, `pane_remaker`, `read_ranges`: which panes are made, and in which order
- `limits`, `memory`: when reading pauses
- `restart`, `state`, `dead_letters`: the agent's files on disk
- `node_log`, `pane_order`, `shared_reader`: one reading for all jobs that read a log alike
- `job_panes`, `sent_panes`: one job's panes over that reading, and the panes it has sent
- `agent_job`, `job_orders`: one job with all that it needs; orders to start and stop jobs
- `agent_loop`, `surroundings`, `agent`: the loop, what its parts share, and the whole process
- `log_notices`, `summary`: messages to the user while the agent runs, and at its end

Modules that send:

- `bodies`, `outbox`: encoded panes, kept on disk until the root has them
- `link_health`, `delivery`: decide which group goes where, and when (pure)
- `wire`, `ways`, `delivery_attempt`, `sender`: send to the root or to a parent, with retries
- `root_decisions`: the news of a job's windows
- `active_panes`, `parent`, `parent_server`: an agent that merges the panes of others
- `membership`, `addresses`: a member of the tree that the root builds
- `job_host`: the jobs that the root wants run here
- `network`: puts the senders together
"""
