"""What a look at a store found: what is wrong with which file, and what was looked at."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

COPY = "restore it from a copy of the store"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong."""

    file: str
    wrong: str
    mend: str

    def __str__(self) -> str:
        return f"{self.file}: {self.wrong}; to mend it: {self.mend}"


@dataclass(slots=True)
class Findings:
    """All of them, and the count of files, rows and whatever else was looked at."""

    found: list[Finding] = field(default_factory=list)
    looked: Counter[str] = field(default_factory=Counter)

    def add(self, file: Path | str, wrong: str, mend: str = COPY) -> None:
        self.found.append(Finding(str(file), wrong, mend))

    def summary(self) -> str:
        """What was looked at, in one line."""
        counts = ", ".join(f"{number:,} {what}" for what, number in self.looked.items())
        wrong = f"{len(self.found)} wrong" if self.found else "all is well"
        return f"looked at {counts or 'nothing'}: {wrong}"
