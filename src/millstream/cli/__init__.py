"""The command `millstream`: one module per command, and the modules that they share.

main         the entry point: the group, its errors and exit codes
run, serve, new, check, graph, send, tail, slates, deadletters    some of the commands
dump         `slates dump`
store        finds the store that a reading command means
which_server       finds the server that a command talks to
serving_options    the options of the HTTP server
run_server   the server beside a run; `spark_run` is a run with its display and server
live         the live lines of a continuous run
lines        splits a pipe or a file into lines as they come
progress     the progress display of a run
error_exit   shows an error as one line and chooses the exit code
stop_signals handles Ctrl-C and SIGTERM

Spark is loaded only by the commands that run it.
"""
