"""Fault runs of agents, processes that make panes of a growing log, and of the root that gets them.

- `app`: the jobs
- `writing`: a log that grows and is rotated, and the truth about it
- `judging`: compares the messages that the root got, and its windows, with the truth
- `running`: agents, and a root without Spark: the real server, which receives the messages
- `struck`: an agent that kills itself at a named point

Every other module is a fault.
"""
