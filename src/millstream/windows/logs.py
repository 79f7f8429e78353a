"""How an agent reads the log of its node: what a line is, and where its time stands (iMR, 4.1).

ms.windows.Logs(ts="time", unit="s")                                lines of JSON
ms.windows.Logs(pattern=r"(?P<host>\\S+) .* \\[(?P<time>[^]]+)\\]",
                ts="time", time_format="%d/%b/%Y:%H:%M:%S %z")       lines of text
"""

from __future__ import annotations

from codecs import lookup
from dataclasses import dataclass

from millstream.errors import DefinitionError
from millstream.model.duration import Duration, microseconds, shown_duration
from millstream.model.line_records import check_pattern, check_starts
from millstream.model.path import is_path
from millstream.model.source import TIME_UNITS, TimeOf
from millstream.model.time_text import check_time_text
from millstream.windows.fidelity import Error
from millstream.windows.job import Job

FORMATS = ("json", "text")
MOST_OPEN = 1_000
"""Panes that lateness may hold open."""


@dataclass(frozen=True, kw_only=True)
class Logs:
    """The form of a job's logs. Without `ts` a record's time is when the agent first read it."""

    format: str = "json"
    """`json`: a line is a JSON value. `text`: a line is `{"line": TEXT}`."""
    pattern: str | None = None
    """Of text: the record is the pattern's named groups; a line that does not match is dead."""
    starts: str | None = None
    """A regular expression: a record begins at a line that it matches, and the lines that follow
    are of it, with their line ends between them."""
    encoding: str | None = None
    """Of the log; None: UTF-8."""
    ts: TimeOf = None
    """A field, a dotted path or a function of the record."""
    unit: str | None = None
    """Of a time that is a number."""
    time_format: str | None = None
    """Of a time that is text and not ISO 8601, as for `strptime`; without a year in it, the last
    one in which the time is not after the clock (`model.time_text`)."""
    zone: str | None = None
    """Of times that are text and say none, as "Europe/Berlin"; None: UTC."""
    ahead: Duration = "1d"
    """A line whose time is more than that after the clock is a dead letter: else it would end all
    panes until then, and make the lines after it late."""
    jump: Duration = "1h"
    """A line whose time is more than that after the line before it is a dead letter, if the lines
    after it go back: one wrong time must not make all that follows late."""
    lateness: Duration = "0s"
    """How far a line may be behind the newest one, by its time, and still count: a pane is ended
    when a line has come that is so much after its end."""
    grace: Duration = "250ms"
    """How long after the end of a pane by the clock its records may still be written, if nothing
    later was: then it is ended without them. The other nodes' windows wait as long for a node that
    is silent."""

    def check_job(self, job: Job, where: str) -> None:
        """DefinitionError, if a job cannot be made of such logs."""
        lateness = microseconds(self.lateness, "logs: lateness")
        if not lateness:
            return
        said = f"{where}: logs: lateness must be left out"
        if job.span.axis != "time":
            raise DefinitionError(
                f"{said} if by is {job.span.axis!r}: it is of time; got {self.lateness!r}"
            )
        if isinstance(job.fidelity, Error):
            raise DefinitionError(
                f"{said} if the fidelity is Error: panes are read once more for its rounds, each "
                f"as one piece of the log; got {self.lateness!r}"
            )
        if lateness > MOST_OPEN * job.span.pane:
            raise DefinitionError(
                f"{where}: logs: lateness must be at most {MOST_OPEN:,} panes, since so many are "
                f"open at once; got {self.lateness!r} and panes of "
                f"{shown_duration(job.span.pane)}; give the job longer panes (pane=)"
            )
        if job.latency is not None and microseconds(job.latency, "job: latency") <= lateness:
            raise DefinitionError(
                f"{where}: logs: lateness must be shorter than the job's latency, "
                f"{job.latency!r}: else windows are closed before their panes end; got "
                f"{self.lateness!r}"
            )

    def __post_init__(self) -> None:
        if self.pattern is not None and self.format == "json":
            object.__setattr__(self, "format", "text")
        if self.format not in FORMATS:
            raise DefinitionError(
                f"logs: format must be one of {', '.join(FORMATS)}; got {self.format!r}"
            )
        if self.unit is not None and self.unit not in TIME_UNITS:
            raise DefinitionError(
                f"logs: unit must be one of {', '.join(TIME_UNITS)}; got {self.unit!r}"
            )
        if self.starts is not None:
            check_starts(self.starts, "logs")
        if self.encoding is not None:
            object.__setattr__(self, "encoding", _encoding(self.encoding))
        microseconds(self.grace, "logs: grace")
        microseconds(self.ahead, "logs: ahead")
        microseconds(self.jump, "logs: jump")
        if not (self.ts is None or callable(self.ts) or is_path(self.ts)):
            raise DefinitionError(
                "logs: ts must be a field, a dotted path or a function of the record; "
                f"got {self.ts!r}"
            )
        if microseconds(self.lateness, "logs: lateness") and self.ts is None:
            raise DefinitionError(
                "logs: ts must name the field with the time, if lateness says how far that may be "
                f"behind; got lateness={self.lateness!r}"
            )
        if self.ts is None and (self.unit or self.time_format or self.zone):
            raise DefinitionError(
                "logs: ts must name the field with the time, if unit, time_format or zone says its "
                "form"
            )
        if self.pattern is not None:
            check_pattern(self.pattern, "logs")
        self.check_field(self.ts, "logs: ts")
        check_time_text(self.time_format, self.zone, "logs")

    def check_field(self, field: object, where: str) -> None:
        """DefinitionError if no line of text could have a field; of JSON any could."""
        if self.format != "text" or not isinstance(field, str):
            return
        names, of = {"line"}, "a line without a pattern"
        if self.pattern is not None:
            names, of = check_pattern(self.pattern, "logs"), "the pattern's groups"
        if field not in names:
            raise DefinitionError(
                f"{where} must be one of {of}, {', '.join(sorted(names))}; got {field!r}"
            )


def _encoding(given: object) -> str:
    """Python's name of an encoding whose lines end as those of ASCII do.

    >>> _encoding("Latin1"), _encoding("UTF8")
    ('iso8859-1', 'utf-8')
    """
    try:
        name = lookup(str(given)).name
        ascii_bytes = bytes(range(128))
        if name == "utf-8" or (
            ascii_bytes.decode(name) == ascii_bytes.decode("ascii")
            and all(len(bytes([one]).decode(name, "replace")) == 1 for one in range(128, 256))
        ):
            return name
    except (LookupError, UnicodeError, TypeError):
        pass
    raise DefinitionError(
        "logs: encoding must be utf-8 or one with a byte for each character, such as latin-1, "
        f"since places in a log are bytes; got {given!r}"
    )
