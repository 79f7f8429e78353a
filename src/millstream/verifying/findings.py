"""The findings of a check: what is wrong with which file, and counts of what was checked."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from millstream.counted_nouns import counted

COPY = "restore it from a copy of the store"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong."""

    file: str
    wrong: str
    repair: str

    def __str__(self) -> str:
        return f"{self.file}: {self.wrong}; to repair it: {self.repair}"


@dataclass(slots=True)
class Findings:
    """All findings, and counts of the files, rows and so on that were checked."""

    faults: list[Finding] = field(default_factory=list)
    looked: Counter[str] = field(default_factory=Counter)

    def add(self, file: Path | str, wrong: str, repair: str = COPY) -> None:
        self.faults.append(Finding(str(file), wrong, repair))

    def summary(self) -> str:
        """The counts of what was checked, in one line."""
        counts = ", ".join(counted(n, _singular(nouns), nouns) for nouns, n in self.looked.items())
        wrong = f"{len(self.faults)} wrong" if self.faults else "all is well"
        return f"looked at {counts or 'nothing'}: {wrong}"


def _singular(nouns: str) -> str:
    """Returns the singular of what was counted.

    >>> _singular("changes objects"), _singular("rows in bases")
    ('changes object', 'row in bases')
    """
    return re.sub(r"s(?= (?:of|in) |$)", "", nouns, count=1)
