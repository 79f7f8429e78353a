"""A small store as it was after each of its batches, and ways to damage its files."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import patch

import millstream as ms
from millstream.driver.durability.disk_flush import Flushing
from millstream.driver.in_process import run
from millstream.driver.outputs.publisher import Publisher
from millstream.settings.settings import Settings
from millstream.stores.progress import Progress
from millstream.stores.reader import SlateReader

BATCHES, KEYS = 4, 24
HOUR = 3_600_000_000
IGNORED = {"lock", "lock.mdb"}
"""Files that hold nothing: who has the store, and LMDB's table of readers."""
ALIKE = ("shard-0001", "/fence", "/end")
"""Parts of the names of files that equal another file, or can be rebuilt from one."""


def counting() -> ms.App:
    app = ms.App("counting")
    app.source("words", key="word", ts="ts", unit="us")
    app.output("loud")

    @app.map("words", publishes="loud")
    def shout(event: Any) -> Any:
        if event.value["ts"] % 5 == 0:
            yield ms.emit(key=event.key.upper())

    @app.update("words")
    def count(event: Any, slate: Any) -> None:
        slate["n"] = slate.get("n", 0) + 1

    return app


@dataclass(frozen=True)
class Made:
    """A store's folder after each batch; the input has the files of all of them."""

    folder: Path
    layered: bool

    def after(self, batches: int) -> Path:
        return self.folder / f"after-{batches}"

    def start(
        self, store: Path, *, check: bool = True, say: Callable[[str], None] = lambda _: None
    ) -> None:
        """A start of the application over a store, to the end of its input."""
        sources = {"words": f"json:{self.folder / 'in'}"}
        run(
            counting(),
            Settings.of(
                "counting",
                store,
                sources,
                shards=2,
                available_now=True,
                check_store=check,
                sink_patience=0,
                flush=HOUR if self.layered else None,
            ),
            say=say,
        )

    def kinds(self) -> list[str]:
        """Returns a file of each kind."""
        return [name for name in self.files() if not any(part in name for part in ALIKE)]

    def files(self) -> list[str]:
        """The durable files of the store, by their paths in it."""
        whole = self.after(BATCHES)
        found = (path.relative_to(whole) for path in whole.rglob("*") if path.is_file())
        return sorted(str(path) for path in found if path.name not in IGNORED)


def made(folder: Path, *, layered: bool) -> Made:
    """Run batch after batch; every word comes in the first, and again in some others.

    A layer is left as a process that is killed leaves it: what was committed is not flushed.
    """
    input_ = folder / "in"
    input_.mkdir(parents=True)
    stores = Made(folder, layered)
    for batch in range(BATCHES):
        words = [key for key in range(KEYS) if batch == 0 or key % (batch + 1) == 0]
        lines = [json.dumps({"word": f"w{key}", "ts": batch * 100 + key}) for key in words]
        (input_ / f"{batch}.json").write_text("\n".join(lines) + "\n")
        with patch.object(Flushing, "flush", _flush_unless_ended):
            stores.start(folder / "store")
        shutil.copytree(folder / "store", stores.after(batch + 1))
    return stores


_flush = Flushing.flush


def _flush_unless_ended(
    flushing: Flushing,
    progress: Progress,
    publisher: Publisher,
    *,
    ended: bool = False,
    again: bool = False,
) -> None:
    if not ended:
        _flush(flushing, progress, publisher, again=again)


def slates(store: Path) -> dict[str, Any]:
    """Returns the slates that a reader finds in the store."""
    with SlateReader(store) as reader:
        return {slate.key: slate.value for slate in reader.scan("count")}


Damage = Callable[[Made, Path, str], bool]
"""Damages a file of a store; False if it cannot be damaged so."""


def delete(stores: Made, store: Path, name: str) -> bool:
    (store / name).unlink(missing_ok=True)
    return True


def empty(stores: Made, store: Path, name: str) -> bool:
    (store / name).write_bytes(b"")
    return True


def flip(stores: Made, store: Path, name: str) -> bool:
    content = bytearray((store / name).read_bytes())
    if not content:
        return False
    content[len(content) // 2] ^= 0x10
    (store / name).write_bytes(content)
    return True


def older(batches: int) -> Damage:
    def replace(stores: Made, store: Path, name: str) -> bool:
        source = stores.after(batches) / name
        if not source.exists() or source.read_bytes() == (store / name).read_bytes():
            return False
        shutil.copyfile(source, store / name)
        return True

    return replace


DAMAGES: dict[str, Damage] = {
    "deleted": delete,
    "emptied": empty,
    "flipped": flip,
    "one batch older": older(BATCHES - 1),
    "two batches older": older(BATCHES - 2),
}


def damaged_ways(
    names: Iterable[str], damages: Iterable[str] = tuple(DAMAGES)
) -> Iterator[tuple[str, str]]:
    """Each of these files with each damage."""
    return product(names, damages)
