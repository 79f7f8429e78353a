"""How an agent reads the log of its node: what a line is, and where its time stands (iMR, 4.1).

ms.windows.Logs(ts="time", unit="s")                                lines of JSON
ms.windows.Logs(pattern=r"(?P<host>\\S+) .* \\[(?P<time>[^]]+)\\]",
                ts="time", time_format="%d/%b/%Y:%H:%M:%S %z")       lines of text
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from millstream.errors import DefinitionError
from millstream.model.source import TIME_UNITS, TimeOf

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
    """Of a time that is text and not ISO 8601, as for `strptime`; UTC, unless it has an offset."""

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
        if self.ts is None and (self.unit or self.time_format):
            raise DefinitionError(
                "logs: ts must name the field with the time, if unit or time_format says its form"
            )
        if self.pattern is not None:
            self._check_pattern(self.pattern)

    def _check_pattern(self, pattern: str) -> None:
        try:
            names = re.compile(pattern).groupindex
        except re.error as error:
            raise DefinitionError(
                f"logs: pattern must be a regular expression; got {pattern!r}: {error}"
            ) from None
        if not names:
            raise DefinitionError(
                f"logs: pattern must name its groups, as in (?P<host>\\S+); got {pattern!r}"
            )
