"""The logs of files taken in: every line against its checksum."""

from __future__ import annotations

from pathlib import Path

import msgspec

from millstream.durable import without_checksum
from millstream.verifying.findings import COPY, Findings

REPLAY = f"{COPY}, or begin a new store with --store: it says which files were taken"


def check_sources(folder: Path, findings: Findings) -> None:
    """Look at the logs of all sources that read files."""
    for path in sorted(folder.glob("*.log")):
        findings.looked["files"] += 1
        *lines, begun = path.read_bytes().split(b"\n")
        for number, line in enumerate(lines, 1):
            findings.looked["lines"] += 1
            try:
                msgspec.json.decode(without_checksum(line))
            except ValueError as error:
                if number == len(lines) and not begun:
                    _torn(path, findings)
                else:
                    findings.add(path, f"line {number} is damaged: {error}", REPLAY)
                break
        else:
            if begun:
                _torn(path, findings)


def _torn(path: Path, findings: Findings) -> None:
    mend = "start the application: if a crash tore it, it is cut off and the files are listed anew"
    findings.add(path, "its last line is torn or damaged", f"{mend}; else {REPLAY}")
