"""Fault runs of agents: processes that make panes of a growing log, and the root that takes them.

- `app`: the jobs
- `writing`: a log that grows and is rotated, and what is true of it
- `judging`: what the root was told and what its windows say, against the truth
- `running`: agents, and a root without Spark: the real server, which takes the messages
- `struck`: an agent that ends itself with SIGKILL at a named point

Every other module is a fault.
"""
