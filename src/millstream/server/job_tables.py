"""The tables of a job's root, as they stand in a store: what is shown of them, and no more.

The root's table has the values of all keys as well, which may be many; they are not read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from millstream.stores.reader import SlateReader
from millstream.windows.showing import SHOWN, shown


def read_jobs(reader: SlateReader, parts: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Each job among an application's parts, as `showing.shown` words it, by its name."""
    return {
        name: read_job(reader, name, part)
        for name, part in parts.items()
        if part.get("kind") == "job"
    }


def read_job(reader: SlateReader, name: str, part: Mapping[str, Any]) -> dict[str, Any]:
    """One job as of the last committed batch; before the first, a job without panes."""
    update = f"{name}.root"
    if update not in reader.updates:  # the store is of before the job was added
        return shown(name, part, {}, reader.batch)
    batch, tables = reader.entries(update, SHOWN)
    agreed = f"{name}.reducers"
    slate = reader.get(agreed, "") if agreed in reader.updates else None
    return shown(name, part, tables, batch, [] if slate is None else slate.value["schedule"])
