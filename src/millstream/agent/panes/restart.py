"""The restart point: where an agent resumes when it is started again (iMR, 4.4.2).

It is stored in the outbox with each pane that ends. It has the position in the log after the pane,
the counts up to there, and the content of open panes from lines before that position. Everything
after the position is read again. So nothing is lost and nothing is counted twice, no matter when
the agent is killed.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import msgspec

from millstream.agent.log.log_files import Mark
from millstream.errors import StoreError
from millstream.windows.panes.message import PaneManifest, Why
from millstream.windows.panes.pane_maker import Making


class CarriedPane(msgspec.Struct, frozen=True, kw_only=True):
    """A pane that was open at the restart point: see `windows.panes.pane_maker.Making`."""

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
    """The partials by key, as JSON."""
    misdated: int = 0
    claimed: dict[str, int] = {}


@dataclass(slots=True)
class Counts:
    """Numbers of records by outcome."""

    on_time: int = 0
    late: int = 0
    shed: int = 0
    dead: int = 0
    misdated: int = 0
    """Those of the dead records that were set aside because their time was implausible."""

    def add(self, manifest: PaneManifest) -> None:
        self.on_time += manifest.records
        self.late += sum(manifest.late.values())
        self.shed += manifest.shed
        self.dead += manifest.dead
        self.misdated += manifest.misdated

    @property
    def all(self) -> int:
        return self.on_time + self.late + self.shed + self.dead

    @property
    def listed(self) -> list[int]:
        return [self.on_time, self.late, self.shed, self.dead, self.misdated]

    def plus(self, other: Counts) -> Counts:
        return Counts(*(a + b for a, b in zip(self.listed, other.listed, strict=True)))

    def less(self, *others: Counts) -> Counts:
        """Returns the counts minus those of others."""
        mine = self.listed
        for other in others:
            mine = [a - b for a, b in zip(mine, other.listed, strict=True)]
        return Counts(*mine)


class Restart(msgspec.Struct, forbid_unknown_fields=True):
    """The restart point."""

    pane: int | None = None
    """The pane to make next; None if none was begun."""
    position: list[Mark] = []
    read: int = 0
    read_bytes: int = 0
    outside: int = 0
    counts: Counts = msgspec.field(default_factory=Counts)
    letters: list[int] = msgspec.field(default_factory=lambda: [0, 0, 0])
    """The `state` of the dead letters: see `DeadLetters`."""
    gaps: int = 0
    told: dict[str, list[int]] = {}
    """For panes made in rounds: those from `pane` on that were sent already. For each first pane:
    the pane after the last, and the counts of their records."""
    over: int | None = None
    """The number of records read when the end of the log was reported; None if it was not."""
    shed_why: dict[str, int] = {}
    """Records that were shed, by the reason."""
    gap_to: int | None = None
    """The place on the axis up to which lines may have been lost, if nothing was read since
    (`pane_reader`)."""
    open: list[CarriedPane] = []
    """Panes from `pane` on that have records from before the position."""

    def described(self) -> dict[str, Any]:
        """Returns the restart point as JSON."""
        described = msgspec.structs.asdict(self)
        described["position"] = msgspec.to_builtins(self.position)
        described["counts"] = asdict(self.counts)
        # Left out if empty: older versions do not know these fields, and may be installed again.
        if not self.open:
            del described["open"]
        if not self.counts.misdated:
            del described["counts"]["misdated"]
        return described

    def making(self) -> Making:
        return Making(
            pane=self.pane, read=self.read, read_bytes=self.read_bytes, outside=self.outside
        )


def restart_from(after: Any) -> Restart:
    """Reads what `described` has returned; a new restart point if there is none."""
    if after is None:
        return Restart()
    try:
        return msgspec.convert(after, Restart)
    except msgspec.ValidationError:
        raise StoreError(
            "the restart point in the agent's state is of another version; name a new folder with "
            "--state, and the log is read from its beginning"
        ) from None
