"""An application for a cluster, its input, and what its store holds at the end."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import millstream as ms
from millstream.places.directory_place import DirectoryPlace
from millstream.settings.settings import Settings
from millstream.stores.reader import SlateReader
from millstream.stores.shared.store_mirror import StoreMirror
from millstream.testing import run as run_reference

SHARDS, TASKS = 8, 4
Counts = dict[str, dict[str, int]]


def two_layers() -> ms.App:
    """Words are counted; each goes on, by its first letter, to a second layer, which sends some
    of them back to the first."""
    app = ms.App("two_layers")
    app.source("words", key="word", ts="ts", unit="us")

    @app.update("words", "again", publishes="counted")
    def count(event: Any, slate: dict[str, Any]) -> Any:
        slate["count"] = slate.get("count", 0) + 1
        if "back" not in event.value:
            kill = {"kill": event.value["kill"]} if "kill" in event.value else {}
            word = {"word": event.key, "n": event.value["ts"]}
            yield ms.emit(key=event.key[0], value=word | kill)

    @app.update("counted", publishes="again")
    def letters(event: Any, slate: dict[str, Any]) -> Any:
        slate["count"] = slate.get("count", 0) + 1
        if "kill" in event.value:
            end_own_executor(event.value["kill"])
        if event.value["n"] % 10 == 0:
            yield ms.emit(key=event.value["word"], value={"back": True})

    return app


def end_own_executor(flag: str) -> None:
    """Kills the executor of this task, unless it was killed before. The output of the first layer
    there is lost with it."""
    try:
        os.close(os.open(flag, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    daemon = os.getppid()
    executor = int(Path(f"/proc/{daemon}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(executor, signal.SIGKILL)


def records(count: int, first: int = 1) -> list[dict[str, Any]]:
    """Generates a number of words, some of them often."""
    return [
        {"word": f"{'abcdefghij'[n % 10]}{n * n % 97}", "ts": n}
        for n in range(first, first + count)
    ]


def put(folder: Path, name: str, lines: list[dict[str, Any]]) -> None:
    """Move a file in whole."""
    folder.mkdir(parents=True, exist_ok=True)
    hidden = folder / f".{name}"
    hidden.write_text("".join(json.dumps(line) + "\n" for line in lines))
    hidden.rename(folder / name)


def settings(folder: Path, master: str, **more: Any) -> Settings:
    """A run over what is in `folder/in`, on the shared store `folder/place`."""
    options = {"shards": SHARDS, "tasks": TASKS, "available_now": True, "memory": "512m", **more}
    return Settings.of(
        "two_layers",
        folder / "work",
        {"words": f"json:{folder / 'in'}"},
        {},
        master=master,
        place=f"shared:{folder / 'place'}",
        **options,
    )


def stored(folder: Path) -> Counts:
    """The counts in the store."""
    StoreMirror(DirectoryPlace(folder / "place"), folder / "mirror", patience=0.0).close()
    with SlateReader(folder / "mirror") as reader:
        return {
            update: {slate.key: slate.value["count"] for slate in reader.scan(update)}
            for update in ("count", "letters")
        }


def expected(lines: list[dict[str, Any]]) -> Counts:
    """The counts that the reference gives."""
    ran = run_reference(two_layers(), {"words": lines})
    return {
        update: {key: slate["count"] for key, slate in ran.slates(update).items()}
        for update in ("count", "letters")
    }


def shards_of(cache: Path) -> set[int]:
    """The shards that a host has copies of."""
    return {int(folder.name) for folder in cache.glob("copies/*/*/????")}
