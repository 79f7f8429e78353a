"""Other stream processors on the same topic, each in an environment of its own.

environments.py    makes the environments, in a cache folder
counting.py        runs one over a topic, in two processes, and gives its rate
NAME_count.py      the application, as the documentation of NAME has one; imports nothing of ours
progress.py        how such an application says how far it is
NAME.txt           what its environment has
"""
