"""The process on a log server that makes panes where the logs are (iMR, sections 2.2 and 4).

The agent needs no Spark, no JVM, and no library but msgspec.

- `options`: the settings that an agent starts with
- `agent`, `agent_loop`, `surroundings`: the whole process, its loop, what its parts share
- `agent_job`: one job with its folder, outbox, link and panes
- `job_orders`, `job_host`: orders to start and stop jobs; fetches the jobs that the root wants
- `node_log`, `shared_reader`: one reading of a log for all jobs that read it alike
- `network`: connects the parts that send and receive
- `limits`, `memory`: when reading pauses
- `state`, `job_status`: the agent's folder on disk, and the status in it
- `log_notices`: messages to the user while the agent runs

`log/`, the files and their lines:

- `log_files`, `log_file_list`, `log_follower`: files as they grow, are rotated, truncated, deleted
- `packed_files`: rotated files that were compressed
- `array_files`: refuses files that are one JSON array
- `read_ranges`: finds what was read earlier
- `multiline_records`, `lines`, `line_times`, `first_seen_times`: a record and its time, from lines
- `line_slices`, `pane_order`: short slices of lines, and the order of several files

`panes/`, from lines to panes:

- `pane_combiner`, `pane_reader`, `open_panes`: from lines to panes
- `pane_pace`, `pane_room`, `rounds`, `pane_remaker`: which panes are made, and in which order
- `job_panes`, `sent_panes`: one job's panes, and those that it has sent
- `log_cursor`, `record_stamps`: how far a job is in the log, and the times of records without one
- `restart`, `dead_letters`: where an agent resumes; lines that cannot be read

`delivery/`, to the root or a parent:

- `bodies`, `outbox`: encoded panes, kept on disk until the root has them
- `link_health`, `delivery_plan`: decide which group goes where, and when (pure)
- `wire`, `ways`, `delivery_attempt`, `sender`: send, with retries
- `root_decisions`: the news of a job's windows

`tree/`, with other agents:

- `active_panes`, `parent`, `parent_server`: an agent that merges the panes of others
- `membership`: a member of the tree that the root builds
"""
