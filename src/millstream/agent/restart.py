"""Where an agent goes on when it is started again (iMR, 4.4.2).

It is kept with each pane that ends, in the outbox: the place in the log after the pane, what had
been counted by then, and what panes that had not ended had of the lines before that place. All that
was read after it is read again. So nothing is lost and nothing counted twice, whenever the agent is
killed.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any

import msgspec

from millstream.errors import StoreError
from millstream.windows.making import Making
from millstream.windows.message import Manifest, Why


class CarriedPane(msgspec.Struct, frozen=True, kw_only=True):
    """A pane that had not ended: see `windows.making.Making`."""

    pane: int
    records: int
    bytes: int
    shed: int
    shed_bytes: int
    dead: int
    first: int | None
    last: int | None
    late: dict[str, int]
    given_up: Why | None
    gap: int
    partials: Any
    """By key, as JSON."""
    misdated: int = 0
    claimed: dict[str, int] = {}


@dataclass(slots=True)
class Counts:
    """What became of the records of the panes that have ended."""

    on_time: int = 0
    late: int = 0
    shed: int = 0
    dead: int = 0

    def add(self, told: Manifest) -> None:
        self.on_time += told["records"]
        self.late += sum(told["late"].values())
        self.shed += told["shed"]
        self.dead += told["dead"]

    @property
    def all(self) -> int:
        return sum(self.listed)

    @property
    def listed(self) -> list[int]:
        return [self.on_time, self.late, self.shed, self.dead]

    def plus(self, other: Counts) -> Counts:
        return Counts(*(a + b for a, b in zip(self.listed, other.listed, strict=True)))

    def less(self, *others: Counts) -> Counts:
        """Without what others have."""
        mine = self.listed
        for other in others:
            mine = [a - b for a, b in zip(mine, other.listed, strict=True)]
        return Counts(*mine)


@dataclass(slots=True)
class Restart:
    """The restart point."""

    pane: int | None = None
    """The pane that is made next; None: none was begun."""
    position: list[dict[str, Any]] = field(default_factory=list)
    read: int = 0
    read_bytes: int = 0
    outside: int = 0
    counts: Counts = field(default_factory=Counts)
    letters: list[int] = field(default_factory=lambda: [0, 0, 0])
    """Of the dead letters: bytes of the file, how many it has, how many were cut off."""
    gaps: int = 0
    told: dict[str, list[int]] = field(default_factory=dict)
    """Of panes made in rounds: those from `pane` on that were sent already, up to which one, and
    what became of their records."""
    over: int | None = None
    """How many records had been read when it was said that the log is at its end."""
    shed_why: dict[str, int] = field(default_factory=dict)
    """Records that were shed, by the reason."""
    gap_to: int | None = None
    """Up to where on the axis lines may have been lost, if nothing was read since (`reading`)."""
    open: list[CarriedPane] = field(default_factory=list)
    """Panes from `pane` on that have records of before the position."""

    def described(self) -> dict[str, Any]:
        """As JSON; an agent of before that is put back knows no `open`, and need not if it is
        empty."""
        described = {one.name: getattr(self, one.name) for one in fields(self)}
        described["counts"] = asdict(self.counts)
        if not self.open:
            del described["open"]
        return described

    def making(self) -> Making:
        return Making(
            pane=self.pane, read=self.read, read_bytes=self.read_bytes, outside=self.outside
        )


def restart_from(after: Any) -> Restart:
    """The restart point that `described` gave; a new one if there is none."""
    if after is None:
        return Restart()
    try:
        carried = msgspec.convert(after.get("open", []), list[CarriedPane])
        return Restart(**{**after, "counts": Counts(**after["counts"]), "open": carried})
    except (TypeError, KeyError, msgspec.ValidationError):
        raise StoreError(
            "the restart point in the agent's state is of another version; name a new folder with "
            "--state, and the log is read from its beginning"
        ) from None
