"""Continuous MapReduce over windows, with a declared fidelity (iMR).

- `span`: ranges, slides and panes on one axis
- `job`: what the user says: map, combine, reduce, and what is asked of the windows
- `making`: records become panes at a node; pure, for agents and for Spark
- `coverage`: C², which panes of which nodes are in a window
- `fidelity`: the bounds on it, and when a window is closed
- `merged`: a window's values from its panes, merged anew or moved on
- `root`: the update that has the scoreboard and closes the windows
- `placing`: a job as maps and updates of the model
"""

from millstream.windows.coverage import Coverage
from millstream.windows.fidelity import Area, Spatial, Temporal
from millstream.windows.job import Job

__all__ = ["Area", "Coverage", "Job", "Spatial", "Temporal"]
