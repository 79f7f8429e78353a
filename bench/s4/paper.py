"""The figures that the paper gives in its text and tables, for comparison.

Its Figures 3, 4 and 11 are pictures without figures in the text; what is said of them is quoted in
docs/papers/s4-evaluation.md.
"""

from __future__ import annotations

KEYS = (1, 2, 4, 8)
CPU: dict[tuple[int, int, int], tuple[float, ...]] = {
    (1, 1, 500): (17.5, 25, 50, 75),
    (1, 1, 1000): (22.5, 47.5, 70, 80),
    (2, 1, 500): (5, 15, 30, 50),
    (2, 1, 1000): (10, 25, 55, 80),
    (2, 2, 500): (15, 20, 40, 60),
    (2, 2, 1000): (20, 35, 70, 85),
    (3, 1, 500): (5, 12, 18, 40),
    (3, 1, 1000): (7, 25, 30, 70),
    (3, 2, 500): (8, 18, 35, 60),
    (3, 2, 1000): (15, 35, 70, 85),
    (3, 3, 500): (17, 15, 25, 40),
    (3, 3, 1000): (23, 20, 40, 60),
}
"""Tables I to III: percent of a node, by nodes, node and rate, for 1, 2, 4 and 8 keys (10 MB)."""
MEMORY: dict[tuple[int, int, int], tuple[float, ...]] = {
    (1, 1, 500): (65, 65, 65, 78),
    (1, 1, 1000): (65, 65, 74, 72),
    (2, 1, 500): (71, 71, 71, 71),
    (2, 1, 1000): (71, 71, 71, 78),
    (2, 2, 500): (88, 82, 92, 92),
    (2, 2, 1000): (96, 96, 96, 96),
    (3, 1, 500): (65, 65, 65, 65),
    (3, 1, 1000): (65, 65, 65, 68),
    (3, 2, 500): (88, 96, 90, 96),
    (3, 2, 1000): (95, 96, 96, 96),
    (3, 3, 500): (61, 64, 64, 64),
    (3, 3, 1000): (61, 62, 66, 66),
}
"""The same tables: percent of a node's 2 GB."""
THROUGHPUT_LEFT = {(2, 1): 0.55, (3, 1): 0.68, (3, 2): 0.50}
"""Section V.C: the throughput that was left, by nodes and how many of them were killed."""
