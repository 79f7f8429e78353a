"""Fault runs: disturb an application, start it again, and compare it with the reference.

`python -m fault_runs` runs them and writes bench/results/faults.json, from which the table in
docs/guarantees.md is made.

- `result`: the result of a run, and the rows of the table
- `scenario`: the type of a scenario, and the context that scenarios share
- `scenarios`: all scenarios, by name
- `outcome`: an application's outcome, the reference's, and what is lost or doubled
- `chain`: the application that most scenarios disturb
- `records`: the file of results
- `processes`, `strikes`: processes to start and kill, and moments in a batch at which to strike
- `ledger`, `serving`, `hooks`: an application for faults of its input, its server, and ways to
  strike inside this process
- `ending`: ends child processes when this process is terminated
- `cluster`: a Spark cluster of a master and workers on this machine
- `hosts`, `host_cluster`: hosts with their own addresses and disks, in network namespaces, and a
  cluster of them; `s3_server`, `s3_proxy`: S3 for them, and its faults
- `cluster_run`, `cluster_faults`: an application on those hosts, and the runs that disturb it;
  `python -m fault_runs --cluster` writes them to bench/results/cluster_faults.json
- `kafka_server`, `committed_records`: real brokers, and the committed records of their topics;
  `service_faults`: the runs that need such servers, which `python -m fault_runs --services` writes
  to bench/results/service_faults.json
- `agents`: the runs that disturb agents on log servers, their root and their parents

Every other module is a fault, or an application that faults disturb.
"""
