"""How an agent reads the log of its node: what a line is, and where its time stands (iMR, 4.1).

ms.windows.Logs(ts="time", unit="s")                                lines of JSON
ms.windows.Logs(pattern=r"(?P<host>\\S+) .* \\[(?P<time>[^]]+)\\]",
                ts="time", time_format="%d/%b/%Y:%H:%M:%S %z")       lines of text
"""

from __future__ import annotations

from dataclasses import dataclass

from millstream.errors import DefinitionError
from millstream.model.duration import Duration, microseconds
from millstream.model.line_records import check_pattern
from millstream.model.path import is_path
from millstream.model.source import TIME_UNITS, TimeOf
from millstream.model.time_text import check_time_text

FORMATS = ("json", "text")


@dataclass(frozen=True, kw_only=True)
class Logs:
    """The form of a job's logs. Without `ts` a record's time is when the agent first read it."""

    format: str = "json"
    """`json`: a line is a JSON value. `text`: a line is `{"line": TEXT}`."""
    pattern: str | None = None
    """Of text: the record is the pattern's named groups; a line that does not match is dead."""
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
    grace: Duration = "250ms"
    """How long after the end of a pane by the clock its records may still be written, if nothing
    later was: then it is ended without them. The other nodes' windows wait as long for a node that
    is silent."""

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
        microseconds(self.grace, "logs: grace")
        microseconds(self.ahead, "logs: ahead")
        microseconds(self.jump, "logs: jump")
        if not (self.ts is None or callable(self.ts) or is_path(self.ts)):
            raise DefinitionError(
                "logs: ts must be a field, a dotted path or a function of the record; "
                f"got {self.ts!r}"
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
