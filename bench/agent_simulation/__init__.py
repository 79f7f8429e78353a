"""Thousands of agents and their root in one process, with a clock and a network that are made up.

DESIGN
------
The code of the agents and of the root is the real one, shells and all: `Membership`, `Told`,
`Sender`, `Parent` and `JobPanes` of an agent; the placement, the board of news and the application
of the root, run by the reference. What is made up is what they stand on: the clock (`world`),
threads (`virtual_threads`), the network (`network`), disks and logs (`agent_disk`, `made_up_log`).

A thread is a greenlet that gives way only where a real one would wait: for the network, a condition
or a time. So a run has one order of events, which its seed decides: a seed that fails can be run
again. (iMR, 2.2, 3.3 and 4.4; the manner is FoundationDB's and TigerBeetle's.)

- `scenario`, `drawn_scenario`: what is simulated: nodes, job, links, faults
- `world`, `virtual_threads`, `network`: time, threads, messages
- `made_up_log`, `agent_disk`, `agent_node`: a node
- `root_node`: the server and the application
- `faults`: what goes wrong, and when
- `simulation`: a run; `truth`: its answers beside the lines
- `traffic`, `report`: messages a node and second, what deaths cost
- `cases`: `python -m bench agents`
"""
