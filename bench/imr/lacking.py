"""The agent without one of its parts, to show what the part is worth: `python -m bench.imr.lacking
WITHOUT ...`, and then the words of `millstream agent`.

    deaf    does not hear which windows are closed, and so never stops work on their panes
    mute    does not say where it begins, so that nobody knows of the panes before
"""

from __future__ import annotations

import sys

DEAF = ("-m", "bench.imr.lacking", "deaf")
MUTE = ("-m", "bench.imr.lacking", "mute")


def main(words: list[str]) -> None:
    """Run the agent without a part."""
    from millstream.agent.delivery.root_decisions import RootDecisions
    from millstream.agent.panes.pane_reader import PaneReader
    from millstream.cli.main import main as millstream

    def begin(self: PaneReader, pane: int, at: int = 0) -> None:
        self.panes.begin(pane)
        self._enter(new=True)

    without, *rest = words
    if without == "deaf":
        RootDecisions.closed = lambda self, window: False  # type: ignore[method-assign]
    elif without == "mute":
        PaneReader.begin = begin  # type: ignore[method-assign]
    else:
        raise SystemExit(f"the first word must be deaf or mute; got {without!r}")
    millstream(["agent", *rest])


if __name__ == "__main__":
    main(sys.argv[1:])
