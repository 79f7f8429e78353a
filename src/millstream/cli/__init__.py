"""The command `millstream`: one module a command, and what they share.

main         the front door: the group, its errors and exit codes
run, serve, new, check, graph, send, tail, slates, deadletters    the commands
dump         `slates dump`
store        which store a reading command means
which_server       which server a command talks to
serving_options    how a server is to serve
serving      the server beside a run; `running` is a run with all that belongs to it
live         the lines of a run that goes on
lines        lines out of a pipe or a file, as they come
progress     what a run shows of itself
failing      an error as one line and an exit code
stopping     Ctrl-C and SIGTERM

Spark is loaded only by the commands that run it.
"""
