"""The form of a node's log: how an agent reads its lines and finds their time (iMR, 4.1).

ms.windows.Logs(ts="time", unit="s")                                lines of JSON
ms.windows.Logs(pattern=r"(?P<host>\\S+) .* \\[(?P<time>[^]]+)\\]",
                ts="time", time_format="%d/%b/%Y:%H:%M:%S %z")       lines of text
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.errors import DefinitionError
from millstream.model.duration import Duration, microseconds, shown_duration
from millstream.model.line_records import check_pattern, check_starts
from millstream.model.path import is_path
from millstream.model.source import TIME_UNITS, TimeOf
from millstream.model.text_form import encoding_of_lines
from millstream.model.time_text import check_time_text
from millstream.windows.fidelity import Error

if TYPE_CHECKING:
    from millstream.windows.job import Job

FORMATS = ("json", "text")
JUMP: Duration = "1h"
"""The default of `Logs.jump`."""
MOST_OPEN = 1_000
"""The maximum number of panes that lateness may keep open."""


@dataclass(frozen=True, kw_only=True)
class Logs:
    """The form of a job's logs. Without `ts` a record's time is when the agent first read it."""

    format: str = "json"
    """`json`: a line is a JSON value. `text`: a line is `{"line": TEXT}`."""
    pattern: str | None = None
    """For text: the record has the pattern's named groups. A line that does not match is a dead
    letter."""
    starts: str | None = None
    """A regular expression for the first line of a record. The lines that follow, up to the next
    match, belong to the same record, joined by newlines."""
    encoding: str | None = None
    """The encoding of the log. None: UTF-8."""
    ts: TimeOf = None
    """A field, a dotted path or a function of the record."""
    unit: str | None = None
    """The unit of a time that is a number."""
    time_format: str | None = None
    """The `strptime` format of a time that is text and not ISO 8601. If it has no year, it is in
    the latest year for which the time is not after the clock (`model.time_text`)."""
    zone: str | None = None
    """The time zone of times in text that name none, as "Europe/Berlin". None: UTC."""
    until: str | None = None
    """The last day of the log, for a `time_format` without a year. None: the clock's."""
    ahead: Duration = "1d"
    """A line whose time is farther than this after the clock is a dead letter. Otherwise it would
    end all panes up to that time, and make the lines after it late."""
    jump: Duration | None = None
    """Maximum forward jump between two lines. A line beyond it is a dead letter if the following
    lines return to earlier times or, if no line follows yet, if it is also this far ahead of the
    clock. One wrong time must not make all following lines late. None: `JUMP`, or no limit if the
    fidelity is Error."""
    lateness: Duration = "0s"
    """A line still counts if it is behind the newest one by at most this. A pane ends when a line
    has come that is this much later than the pane's end."""
    grace: Duration = "250ms"
    """How long after a pane's end on the clock its records may still be written, if no later record
    was. After that the pane ends without them. The windows wait this long for a silent node."""

    def check_job(self, job: Job, where: str) -> None:
        """Raises DefinitionError if a job cannot read such logs."""
        if self.jump is not None and isinstance(job.fidelity, Error):
            raise DefinitionError(
                f"{where}: logs: jump must be left out if the fidelity is Error: panes are read "
                "once more for its rounds, so lines are not compared with those around them; got "
                f"{self.jump!r}; a time far after the clock is set aside all the same (ahead)"
            )
        lateness = microseconds(self.lateness, "logs: lateness")
        if not lateness:
            return
        problem = f"{where}: logs: lateness must be left out"
        if job.span.axis != "time":
            raise DefinitionError(
                f"{problem} if by is {job.span.axis!r}: lateness is a time; got {self.lateness!r}"
            )
        if isinstance(job.fidelity, Error):
            raise DefinitionError(
                f"{problem} if the fidelity is Error: panes are read once more for its rounds, "
                f"each as one piece of the log; got {self.lateness!r}"
            )
        if lateness > MOST_OPEN * job.span.pane:
            raise DefinitionError(
                f"{where}: logs: lateness must be at most {MOST_OPEN:,} panes, which are then "
                f"open at once; got {self.lateness!r} and panes of "
                f"{shown_duration(job.span.pane)}; give the job longer panes (pane=)"
            )
        if job.latency is not None and microseconds(job.latency, "job: latency") <= lateness:
            raise DefinitionError(
                f"{where}: logs: lateness must be shorter than the job's latency, "
                f"{job.latency!r}: otherwise windows are closed before their panes end; got "
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
        microseconds(JUMP if self.jump is None else self.jump, "logs: jump")
        if not (self.ts is None or callable(self.ts) or is_path(self.ts)):
            raise DefinitionError(
                "logs: ts must be a field, a dotted path or a function of the record; "
                f"got {self.ts!r}"
            )
        if microseconds(self.lateness, "logs: lateness") and self.ts is None:
            raise DefinitionError(
                "logs: ts must name the field with the time if there is a lateness; "
                f"got lateness={self.lateness!r}"
            )
        if self.ts is None and (self.unit or self.time_format or self.zone or self.until):
            raise DefinitionError(
                "logs: ts must name the field with the time if there is a unit, time_format, zone "
                "or until"
            )
        if self.pattern is not None:
            check_pattern(self.pattern, "logs")
        self.check_field(self.ts, "logs: ts")
        check_time_text(self.time_format, self.zone, "logs", self.until)

    def check_field(self, field: object, where: str) -> None:
        """Raises DefinitionError if no line of text could have the field. JSON records could have
        any."""
        if self.format != "text" or not isinstance(field, str):
            return
        names, origin = {"line"}, "a line without a pattern"
        if self.pattern is not None:
            names, origin = check_pattern(self.pattern, "logs"), "the pattern's groups"
        if field not in names:
            raise DefinitionError(
                f"{where} must be one of {origin}, {', '.join(sorted(names))}; got {field!r}"
            )


def _encoding(encoding: object) -> str:
    """Returns Python's name of an encoding; DefinitionError if a log cannot be read in it."""
    name = encoding_of_lines(encoding)
    if name is None:
        raise DefinitionError(
            "logs: encoding must be utf-8 or one with a byte for each character, such as latin-1, "
            f"since positions in a log are in bytes; got {encoding!r}"
        )
    return name
