"""Continuous MapReduce over windows, with a declared fidelity (iMR).

Definition of a job:

- `span`: ranges, slides and panes on one axis
- `job`: the user's definition: map, combine, reduce, and the requirements on the windows
- `field_map`: a map without code
- `logs`: how agents read the logs
- `members`: the nodes of a job
- `placed`: a job under its name in an application, as agents and the server know it
- `definition`: a job as data, for agents that have none of the application's code
- `definition_reader`: builds the job from this data
- `placement`: turns a job into maps and updates of the model
- `coverage`: C², which panes of which nodes are in a window
- `fidelity`: the bounds on the coverage, and the rule for closing a window
- `reducers`: the number of reducers, and the window from which it holds

What is shown of a job:

- `accounts`: where every record went
- `job_view`: the view of a job for the page and the command line
- `lateness`: the warning about logs of which much is late

`panes/`, which are made at the nodes and taken in once:

- `pane_mark`: what a manifest said of a pane
- `pane_maker`: turns records into panes; pure, used by agents and on Spark
- `message`: what nodes send to the root; `checked`: validates messages
- `pane_rank`: ranks the panes of a node by a seed, to decide which are made first
- `shedder`: decides which panes a node gives up
- `pane_ledger`: the update that takes in each pane of each node once

`board/`, the scoreboard:

- `scoreboard`: records which panes of which nodes have come. It is made of the entries of
  `pane_marks`, `node_places`, `board_meta`, `board_windows`, `board_counts` and `window_counts`
- `quiet_windows`: closes long runs of windows without records at once
- `missing_panes`: counts the panes that a window lacks, by cause

`root/`, from panes to windows:

- `window_root`: the update that keeps the scoreboard and closes the windows
- `merged`: merges the values of a window from its panes, or updates those of the previous window
- `window_bounds`: computes the bounds of a window, and decides when `Error` looks at them
- `answers`: the output of a closed window
- `node_accounts`: adds messages to the accounts of their nodes
- `pane_retention`: deletes the entries that no window needs

`bounds/`, answers with bounds:

- `estimates`: computes the bounds
- `strata`: divides the panes of a window into random samples and other losses
- `stratified_sample`, `rare_keys`, `tails`: totals and limits from such samples
- `kinds`: reads the numbers in combined values
"""

from millstream.windows.coverage import Coverage
from millstream.windows.fidelity import Area, Error, Spatial, Temporal
from millstream.windows.field_map import FieldMap
from millstream.windows.job import Job
from millstream.windows.logs import Logs

__all__ = ["Area", "Coverage", "Error", "FieldMap", "Job", "Logs", "Spatial", "Temporal"]
