"""The counts of an open window, changed with each mark (iMR, 3.1).

    share|WINDOW|NODE     how many panes of a node were received, and how many lost; only if the
                          fidelity asks for nodes that are whole

So whether a window can be closed is known without a look at the scoreboard (`coverage.Tally`).
"""

from __future__ import annotations

from millstream.model.slate import Table
from millstream.windows.accounts import Window, window_entry
from millstream.windows.coverage import Tally
from millstream.windows.pane_marks import PaneTally, State


def share(window: int) -> str:
    """How the entries of the nodes' shares of a window begin."""
    return window_entry(window).replace("window", "share", 1)


def clear(window: Window) -> None:
    """Begin to count anew."""
    window.received = window.lost = window.whole = window.hurt = window.some = 0
    window.whole_nodes = window.some_nodes = window.hurt_nodes = window.gone_nodes = 0
    window.drawn_received = 0


def clear_shares(table: Table, number: int) -> None:
    """Delete the nodes' shares of a window."""
    for entry in [entry for entry, _ in table.scan(share(number), share(number + 1))]:
        del table[entry]


def tally_of(window: Window, nodes: int, panes: int) -> Tally:
    """The counts, for whoever judges the coverage; the job has so many nodes, a window panes."""
    return Tally(
        nodes=nodes,
        panes=panes,
        received=window.received,
        lost=window.lost,
        whole=window.whole,
        hurt=window.hurt,
        some=window.some,
        whole_nodes_count=window.whole_nodes,
        hurt_nodes=window.hurt_nodes,
        some_nodes=window.some_nodes,
        gone_nodes=window.gone_nodes,
    )


def count_pane(window: Window, before: PaneTally, after: PaneTally, nodes: int) -> None:
    """Change a window's counts as those of a pane have changed; the job has so many nodes."""
    window.received += after.received - before.received
    window.lost += after.lost - before.lost
    window.whole += (after.received == nodes) - (before.received == nodes)
    window.hurt += (after.lost > 0) - (before.lost > 0)
    window.some += (after.received > 0) - (before.received > 0)


def count_share(
    table: Table,
    number: int,
    window: Window,
    panes: int,
    node: str,
    was: State | None,
    now: State | None,
) -> None:
    """Change a window's counts of nodes as one of the panes of one has changed."""
    entry = f"{share(number)}|{node}"
    received, lost = table.get(entry, [0, 0])
    _add_node(window, received, lost, panes, -1)
    received += (now == "received") - (was == "received")
    lost += (now == "lost") - (was == "lost")
    _add_node(window, received, lost, panes, 1)
    table[entry] = [received, lost]


def _add_node(window: Window, received: int, lost: int, panes: int, sign: int) -> None:
    """Count a node in, or out again."""
    window.whole_nodes += sign * (received == panes)
    window.some_nodes += sign * (received > 0)
    window.hurt_nodes += sign * (lost > 0)
    window.gone_nodes += sign * (lost == panes)
