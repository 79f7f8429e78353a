"""The order in which panes are made, fixed in advance by a seed (iMR, 3.2 and 3.4).

A node's panes fall into blocks, each as long as a window. Within a block every pane has a rank, a
permutation that depends on the seed, the node and the block, and not on the contents of the log. A
node that has time for k panes of a block makes those with a rank under k. They are a simple random
sample. Anyone who knows the seed, such as the root, can tell which panes are in it.
"""

from __future__ import annotations

from functools import lru_cache
from random import Random


def block_of(pane: int, panes: int) -> int:
    """Returns the block of a pane, if a window has `panes` panes."""
    return pane // panes


def rank(seed: int, node: str, pane: int, panes: int) -> int:
    """Returns the rank of a pane in its block: 0 is made first, `panes - 1` last.

    >>> sorted(rank(7, "web1", pane, 4) for pane in range(8, 12))
    [0, 1, 2, 3]
    """
    return _ranks(seed, node, block_of(pane, panes), panes)[pane % panes]


@lru_cache(maxsize=16_384)
def _ranks(seed: int, node: str, block: int, panes: int) -> tuple[int, ...]:
    order = list(range(panes))
    Random(f"{seed}/{node}/{block}").shuffle(order)
    return tuple(order)
