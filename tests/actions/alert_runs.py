"""What a run of an application needs that sends an alert for some visits: files and settings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from actions.receiver import Receiver

from millstream.settings.settings import Settings


def visits(folder: Path, name: str, users: str, **last: Any) -> None:
    """A file with a visit of each of the users, and of one more who is special."""
    (folder / "in").mkdir(exist_ok=True)
    records = [{"user": user, "n": n} for n, user in enumerate(users)]
    records.append({"user": "last", "n": 1000, **last})
    hidden = folder / "in" / f".{name}"
    hidden.write_text("".join(json.dumps(record) + "\n" for record in records))
    hidden.rename(folder / "in" / name)


def settings(folder: Path, there: Receiver, **more: Any) -> Settings:
    given = {"available_now": True, "shards": 4, **more}
    return Settings.of(
        "alerts",
        folder / "store",
        {"visits": f"json:{folder / 'in'}"},
        {},
        actions={"notify": f"webhook:{there.url}"},
        **given,
    )
