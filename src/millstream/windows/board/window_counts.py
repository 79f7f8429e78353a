"""The counts of an open window, updated with each mark (iMR, 3.1).

    share|WINDOW|NODE     the number of panes of a node that were received and lost; only if the
                          fidelity needs counts by node

They show whether a window can be closed without reading the scoreboard (`CoverageTally`).
"""

from __future__ import annotations

from millstream.model.slate import Table
from millstream.windows.accounts import WindowAccount, window_entry
from millstream.windows.board.pane_marks import PaneTally, State
from millstream.windows.coverage import CoverageTally


def share(window: int) -> str:
    """Returns the prefix of the entries of the nodes' shares of a window."""
    return window_entry(window).replace("window", "share", 1)


def clear(window: WindowAccount) -> None:
    """Resets the counts."""
    window.received = window.lost = window.tardy = 0
    window.whole = window.hurt = window.some = 0
    window.whole_nodes = window.some_nodes = window.hurt_nodes = window.gone_nodes = 0
    window.drawn_received = 0


def clear_shares(table: Table, number: int) -> None:
    """Deletes the nodes' shares of a window."""
    for entry in [entry for entry, _ in table.scan(share(number), share(number + 1))]:
        del table[entry]


def tally_of(window: WindowAccount, nodes: int, panes: int) -> CoverageTally:
    """Returns the counts as a `CoverageTally`. `nodes` is the number of the job's nodes, `panes`
    that of a window's panes."""
    return CoverageTally(
        nodes=nodes,
        panes=panes,
        received=window.received,
        lost=window.lost,
        whole=window.whole,
        hurt=window.hurt,
        some=window.some,
        late=window.tardy,
        whole_nodes_count=window.whole_nodes,
        hurt_nodes=window.hurt_nodes,
        some_nodes=window.some_nodes,
        gone_nodes=window.gone_nodes,
    )


def count_pane(window: WindowAccount, before: PaneTally, after: PaneTally, nodes: int) -> None:
    """Updates a window's counts after those of a pane have changed. `nodes` is the number of the
    job's nodes."""
    window.received += after.received - before.received
    window.lost += after.lost - before.lost
    window.tardy += after.late - before.late
    window.whole += (after.received == nodes) - (before.received == nodes)
    window.hurt += (after.lost > 0) - (before.lost > 0)
    window.some += (after.received > 0) - (before.received > 0)


def count_share(
    table: Table,
    number: int,
    window: WindowAccount,
    panes: int,
    node: str,
    was: State | None,
    now: State | None,
) -> None:
    """Updates a window's counts of nodes after the state of one pane of a node has changed."""
    entry = f"{share(number)}|{node}"
    received, lost = table.get(entry, [0, 0])
    _add_node(window, received, lost, panes, -1)
    received += (now == "received") - (was == "received")
    lost += (now == "lost") - (was == "lost")
    _add_node(window, received, lost, panes, 1)
    table[entry] = [received, lost]


def _add_node(window: WindowAccount, received: int, lost: int, panes: int, sign: int) -> None:
    """Adds a node to the counts (`sign` 1), or takes it out (-1)."""
    window.whole_nodes += sign * (received == panes)
    window.some_nodes += sign * (received > 0)
    window.hurt_nodes += sign * (lost > 0)
    window.gone_nodes += sign * (lost == panes)
