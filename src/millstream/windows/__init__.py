"""Continuous MapReduce over windows, with a declared fidelity (iMR).

- `span`: ranges, slides and panes on one axis
- `job`: what the user says: map, combine, reduce, and what is asked of the windows
- `field_map`: a map without code
- `logs`: how agents read the logs; `placed`: what agents and the server know a job by; `members`:
  its nodes
- `definition`: a job as data, for agents that have none of the application's code
- `making`: records become panes at a node; pure, for agents and for Spark
- `message`: what nodes tell the root; `checked`: what of it can be taken in
- `coverage`: C², which panes of which nodes are in a window
- `fidelity`: the bounds on it, and when a window is closed
- `drawing`: which panes are made first, by seed; `shedding`: which ones a node gives up
- `strata`: which panes are a fair sample of which; `sampling`, `rare`, `tails`: totals from it;
  `kinds`: the numbers in combined values; `estimates`: answers with bounds
- `merged`: a window's values from its panes, merged anew or moved on
- `reducers`: how many there are, and from which window on
- `pane_ledger`: the update that takes in what nodes tell, once
- `scoreboard`: which pane of which node is there; `pane_marks`, `node_places`, `board_windows`,
  `window_counts`: the entries of panes, nodes and windows that it is made of; `pane_retention`:
  which of them are let go
- `accounts`: where every record went
- `root`: the update that has the scoreboard and closes the windows
- `looking`: the bounds of a window, and when `Error` looks at them
- `answers`: what a closed window says
- `placing`: a job as maps and updates of the model
"""

from millstream.windows.coverage import Coverage
from millstream.windows.fidelity import Area, Error, Spatial, Temporal
from millstream.windows.field_map import FieldMap
from millstream.windows.job import Job
from millstream.windows.logs import Logs

__all__ = ["Area", "Coverage", "Error", "FieldMap", "Job", "Logs", "Spatial", "Temporal"]
