"""The command `millstream`: one module for each command in `commands/`, and what they share.

entry_point  what the script `millstream` calls; main: the group, its errors and exit codes
dump         `slates dump`
store        finds the store that a reading command means
which_server       finds the server that a command talks to
serving_options    the options of the HTTP server
place_options, cluster_flags    the options of a run; option_groups: how options are shared
runtime      the archive that brings the code to the executors of a cluster
spark_run    a run with its display and server
progress     the progress display of a run; live: its live lines
stored_feeds, verify_feeds      feeds of a store without a server, and whether they are correct
error_exit   shows an error as one line and chooses the exit code
stop_signals handles Ctrl-C and SIGTERM

Spark is loaded only by the commands that run it.
"""
