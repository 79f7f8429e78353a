"""A node's mark of a pane on the scoreboard: what its manifest said (iMR, 3.1)."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import astuple, replace

from millstream.windows.panes.message import Mark, PaneManifest


class PaneMark(msgspec.Struct, array_like=True):
    """A mark. It is stored as an array, without the fields at its end that are 0 (`stored`)."""

    mark: Mark
    records: int
    bytes: int
    why: str
    """The reason why the pane is lost; empty if it is not."""
    shed: int
    shed_bytes: int
    dead: int
    late: int
    """Late records of this pane, which its node found after it had sent the pane."""
    read: int
    """Records that were read while the pane was made, without late ones, which belong to other
    panes. With a run of panes they are counted with the first."""
    first: int
    last: int
    gap: int
    misdated: int = 0
    cut: int = 0
    """1: the end of a log has cut the pane off."""

    @property
    def is_lost(self) -> bool:
        """True if the pane is not complete. A pane with a gap is lost, although its records are in
        the values."""
        return self.mark == "lost" or self.gap != 0

    def stored(self) -> tuple[Any, ...]:
        """Returns the form in which it is stored."""
        return astuple(self)[: 14 if self.cut else 13 if self.misdated else 12]

    def unread(self) -> PaneMark:
        """Returns the mark of a further pane of a run: the records read are counted with the first
        pane only."""
        return replace(self, read=0)

    def manifest(self, pane: int) -> PaneManifest:
        """Rebuilds the manifest, as far as it was kept. `late` holds the late records of this
        pane."""
        why: Any = self.why or None
        return PaneManifest(
            mark=self.mark,
            why=why,
            records=self.records,
            bytes=self.bytes,
            shed=self.shed,
            shed_bytes=self.shed_bytes,
            dead=self.dead,
            late={str(pane): self.late} if self.late else {},
            total=0,
            first=self.first if self.records else None,
            last=self.last if self.records else None,
            gap=self.gap,
            misdated=self.misdated,
            cut=self.cut > 0,
        )


Marks = dict[str, PaneMark]
"""The marks of a pane by node."""


def mark_of(manifest: PaneManifest, read: int) -> PaneMark:
    """Returns a node's mark of a pane. `read` is the number of records read while the pane was
    made."""
    return PaneMark(
        manifest.mark,
        manifest.records,
        manifest.bytes,
        manifest.why or "",
        manifest.shed,
        manifest.shed_bytes,
        manifest.dead,
        0,
        read - sum(manifest.late.values()),
        manifest.first or 0,
        manifest.last or 0,
        manifest.gap,
        manifest.misdated,
        int(manifest.cut),
    )


def read_marks(stored: Any) -> Marks:
    """Decodes the marks of an entry."""
    return msgspec.convert(stored, Marks)


def stored_marks(marks: Marks) -> dict[str, Any]:
    """Returns the form in which marks are stored, and sent to reducers."""
    return {node: mark.stored() for node, mark in marks.items()}
