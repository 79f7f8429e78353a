"""Reads the tables of a job's root from a store, only the entries that are shown.

The root's table also has the values of all keys, which may be many; they are not read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from millstream.messages.jobs import JobAnswer
from millstream.stores.reader import SlateReader
from millstream.wall_clock import wall_clock
from millstream.windows.job_view import SHOWN, shown
from millstream.windows.placed import JobPart, job_parts
from millstream.windows.reducers import Agreed


def read_jobs(reader: SlateReader, parts: Mapping[str, Any]) -> dict[str, JobAnswer]:
    """Returns the jobs among an application's parts by name, as answers."""
    return {name: read_job(reader, name, part) for name, part in job_parts(parts).items()}


def read_job(reader: SlateReader, name: str, part: JobPart) -> JobAnswer:
    """Reads one job as of the last committed batch; before the first, a job without panes."""
    update = f"{name}.root"
    if update not in reader.updates:  # the store is older than the job
        return shown(name, part, {}, reader.batch)
    batch, tables = reader.entries(update, SHOWN)
    reducers = f"{name}.reducers"
    slate = reader.get(reducers, "") if reducers in reader.updates else None
    schedule = [] if slate is None else msgspec.convert(slate.value, Agreed).schedule
    return shown(name, part, tables, batch, schedule, clock=wall_clock())
