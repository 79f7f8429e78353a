"""The figures that the paper gives in its text, for comparison.

Its Figures 7 to 13 are pictures without figures in the text, but for these; what else is said of
them is quoted in docs/papers/imr-evaluation.md.
"""

from __future__ import annotations

GOODPUT_GAIN = (0.57, 0.64)
"""Section 5.2: by how much failure eviction raised the goodput."""
USER_ERROR = 0.20
"""Section 5.4: the error per user of randomly drawn panes with less than half of the data."""
HDFS_PART = 0.8
"""Section 5.5: with less of the data, most histograms of drawn and of spatially complete panes
differ from the whole ones."""
OTHER_EQUAL, OTHER_NICE = 0.17, 0.10
"""Section 5.6: what Hadoop lost beside iMR at equal priority, and at most at a lower one."""
NICE_NOTHING = 9
"""Section 5.6: the niceness at which no pane was in time any more."""
