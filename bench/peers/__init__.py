"""Other stream processors on the same data, each in an environment of its own.

environments.py    makes the environments, in a cache folder
NAME.txt           what an environment has
progress.py        how an application says how far it is

The case `kafka` counts a topic with three of them:

counting.py        runs one over a topic, in two processes, and gives its rate
NAME_count.py      the application, as the documentation of NAME has one; imports nothing of ours

The case `peers`:

cases.py           the loads, one after the other, each with all contestants in turn
loads.py           input files and the answers of plain loops; nexmark.py, rule_records.py
contestants.py     who takes part, how each is started, where its answers are
racing.py          measures one contestant with one load; footprint.py, answers.py
on_NAME/WORK.py    the application for NAME; all run in this folder, and import nothing of ours
                   but progress.py and matching.py (those on Millstream import Millstream)
live.py            latency at a fixed rate, for those who can follow a folder
judging.py         ratios and bars
tables.py          the tables of docs/peers.md
"""
