"""Runs an application over raw lines, in files or in an event log, beside the reference.

`harness` wraps events into records that a map unwraps, so lines are always decoded whole there.
Here an update may read the source itself, and of its lines only key and time are decoded on the
way.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from driver_runs.harness import IN_MEMORY, Outcome, outcome_of, reference_over

from millstream import App
from millstream.codec import canonical
from millstream.driver.in_process import run
from millstream.json_checks.json_depth import too_deep
from millstream.log.writer import Entry, LogWriter
from millstream.model.event import Event
from millstream.sources.line_blocks import BOM
from millstream.stores.home import log_of

CLOCK = 1_800_000_000_000_000
"""The reference's; sources with `ahead` cannot be compared."""


def check_lines(
    app: App,
    lines: Sequence[bytes],
    *,
    logs: bool = False,
    parts: int = 1,
    bom: bool = False,
    newline: bytes = b"\n",
    **settings: Any,
) -> Outcome:
    """The lines of the only source give what the reference gives; returns that.

    They lie in so many files, or blocks of the log; `bom` and `newline` are those of the files.
    """
    (source,) = app.checked().sources
    size = max(1, -(-len(lines) // parts))
    pieces = [lines[first : first + size] for first in range(0, len(lines), size)]
    folder = Path(tempfile.mkdtemp(prefix="millstream-lines-", dir=IN_MEMORY))
    try:
        if logs:
            writer = LogWriter(log_of(folder / "store", source.name))
            for piece in pieces:
                writer.append([Entry.of(list(piece))])
            writer.close()
        else:
            (folder / "in" / source.name).mkdir(parents=True)
            for number, piece in enumerate(pieces):
                path = folder / "in" / source.name / f"{number:06d}.json"
                path.write_bytes((BOM if bom else b"") + newline.join(piece) + newline)
        found = outcome_of(run, app, folder, logs=logs, check_store=False, **settings)
    finally:
        shutil.rmtree(folder)
    events, refused = _events(app, lines)
    expected = reference_over(app, events, found.late)
    assert _in_any_order(found) == _in_any_order(expected)
    assert found.streams == expected.streams
    # A line that never became an event has no function; its time is that of its batch.
    assert [letter for letter in found.letters if letter[0]] == expected.letters
    assert len(found.letters) == len(expected.letters) + refused
    return expected


def _events(app: App, lines: Sequence[bytes]) -> tuple[list[Event], int]:
    """The events of the lines, each decoded whole and by itself; and how many are none."""
    (source,) = app.checked().sources
    extract = source.extractor()
    events, refused = [], 0
    for line in lines:
        if not line.strip():
            continue
        try:
            record = msgspec.json.decode(line)
            if too_deep(line):
                raise ValueError("nested too deeply")
            ts, key = extract(record, CLOCK)
            key.encode()
        except Exception:
            refused += 1
        else:
            events.append(Event(source.name, ts, key, record))
    return events, refused


def _in_any_order(outcome: Outcome) -> dict[Any, Any]:
    """The slates, with the fields of their values in canonical order."""
    return {
        owner: (last, canonical(bytes(data)) if data else b"", timers, entries)
        for owner, (last, data, timers, entries) in outcome.slates.items()
    }
