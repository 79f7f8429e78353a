"""Fault runs: an application is disturbed, started again, and compared with the reference.

`python -m fault_runs` runs them and writes bench/results/faults.json, from which the table in
docs/guarantees.md is made.

- `result`: what a run found, and the rows of the table
- `scenario`: what a scenario is, and what all of them share
- `scenarios`: all of them, by name
- `outcome`: what an application left, what the reference gives, and what is lost or doubled
- `chain`: the application that most of them disturb
- `records`: the file of results
- `processes`, `strikes`: processes that are started and ended, moments in a batch to do so
- `ledger`, `serving`, `hooks`: an application that is fed what is disturbed, its server, and ways
  to strike inside this process
- `ending`: what was started ends with whoever started it
- `cluster`: a Spark cluster of a master and workers on this machine
- `agents`: the runs that disturb agents on log servers, their root and their parents

Every other module is a fault, or an application that faults disturb.
"""
