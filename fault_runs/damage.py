"""Damages every kind of durable file of a stopped store: flips a byte, cuts off the end, or removes
the file.

`millstream verify` must name the file. A start must either refuse with an error that names the file
and the repair, or end with exactly the reference's result: some bytes have no meaning (a free
page), and a torn tail that was never acknowledged is cut off. Anything else is silently wrong, and
counts as lost and doubled here. Each kind of file is a run. (The start repairs a damaged or missing
`epoch`: every shard remembers the number too.)

The starts run in a process of their own, `python -m fault_runs.damage FOLDER SEED`, which a damaged
page could end; such an end is not an error that names the file.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Any

import millstream as ms
from fault_runs.hooks import at_points
from fault_runs.ledger import (
    differing,
    encoded,
    entries,
    events_of,
    ledger,
    outcome_of,
    settings_of,
    write_files,
)
from fault_runs.result import Result
from fault_runs.scenario import Context, Scenario
from fault_runs.serving import make_store
from millstream.durable import read_record
from millstream.errors import MillstreamError
from millstream.log.writer import Entry, LogWriter
from millstream.model.event import Event
from millstream.stores.contract import Fence
from millstream.stores.home import Home, log_of

FAULT = "torn-or-flipped-byte"
COUNT, LAST_BATCH = 240, 3
KINDS = {
    "store.json": "store/store.json",
    "epoch": "store/epoch",
    "progress": "store/progress",
    "app.json": "store/app.json",
    "a shard": "store/shards/*/data.mdb",
    "a shard's head pages": "store/shards/*/data.mdb",
    "a shard's last commit": "store/shards/*/data.mdb",
    "a fence": "store/shards/*/fence",
    "a source's log": "store/logs/entries/*.log",
    "the end of a source's log": "store/logs/entries/end",
    "a reader of a source's log": "store/logs/entries/readers/*",
    "an output's log": "store/logs/balances/*.log",
    "the end of an output's log": "store/logs/balances/end",
    "the list of files": "store/sources/*.log",
    "staged output": "store/staging/*.rows",
    "no store.json": "store/store.json",
    "no epoch": "store/epoch",
    "no progress": "store/progress",
    "no app.json": "store/app.json",
    "no shard": "store/shards/*/data.mdb",
    "no list of files": "store/sources/*.log",
    "no staged output": "store/staging/*.rows",
}
PAGE = 4096
NUMBER = 144
"""The offset of the commit's number in each of a shard's first two pages: the higher one counts."""
REPAIRS = ("restore", "delete", "begin a new", "start again", "make", "mend", "move it away")


@dataclass(frozen=True, slots=True)
class Case:
    """The outcome of damaging one file."""

    kind: str
    what: str
    """The damage and the file, in words."""
    named: bool
    """True if `millstream verify` named the file."""
    ended: str
    """The outcome of the start: refused, right, wrong, unclear."""
    lost: int = 0
    doubled: int = 0
    words: str = ""

    @property
    def problem(self) -> str:
        """The broken promise, if any."""
        if self.ended in ("wrong", "unclear"):
            return f"{self.what}: {self.ended}: {self.words}"
        if self.ended == "refused" and not self.named:
            return f"{self.what}: verify did not name it; the start said: {self.words}"
        return ""


def damage(seed: int, folder: Path, context: Context) -> Result:
    """Damages every kind of file, one after the other, each in a copy of the same store."""
    cases: list[Case] = []
    while len(cases) < len(KINDS):
        done = subprocess.run(
            [sys.executable, "-m", "fault_runs.damage", str(folder), str(seed), str(len(cases))],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            stderr=subprocess.PIPE,
            timeout=600,
        )
        lines = (folder / "cases").read_text().splitlines() if (folder / "cases").exists() else []
        cases = [Case(**json.loads(line)) for line in lines]
        if done.returncode > 0:
            return Result(FAULT, seed, 0, 0, failed=done.stderr.decode(errors="replace")[-1500:])
        if done.returncode < 0:
            kind = [*KINDS][len(cases)]
            dead = Case(kind, kind, False, "unclear", words=f"signal {-done.returncode} ended it")
            with (folder / "cases").open("a") as told:
                told.write(json.dumps(asdict(dead)) + "\n")
    problems = [case.problem for case in cases if case.problem]
    refused = sum(case.ended == "refused" for case in cases)
    named = sum(case.named for case in cases)
    note = f"{len(cases)} files: {named} named by verify, {refused} refused at the start"
    return Result(
        FAULT,
        seed,
        sum(case.lost for case in cases),
        sum(case.doubled for case in cases),
        note=note,
        runs=len(cases),
        failed="; ".join(problems)[:1500],
    )


def _main(folder: Path, seed: int, first: int) -> None:
    """Makes the store, damages copies of it, and starts on them, in a process of its own."""
    from millstream.spark.context import open_context

    spark = open_context("damage", "local[2]", "1g")
    app, random = ledger("entries", "more"), Random(seed)
    given = entries(random, COUNT)
    events = events_of("entries", given[::2]) + events_of("more", given[1::2])
    template = folder / "template"
    if not template.exists():
        _make(spark, app, template, given, random)
    for kind in [*KINDS][first:]:
        case = folder / "case"
        shutil.rmtree(case, ignore_errors=True)
        shutil.copytree(template, case)
        result = _one(spark, app, case, kind, events, Random(f"{seed} {kind}"))
        with (folder / "cases").open("a") as told:
            told.write(json.dumps(asdict(result)) + "\n")


def _settings(folder: Path) -> Any:
    sources = {"entries": "log", "more": f"json:{folder.parent / 'in'}"}
    return settings_of(folder, sources, batch_bytes=5_000, lane="one-task", sink_patience=0)


def _make(
    spark: Any, app: ms.App, template: Path, given: list[dict[str, Any]], random: Random
) -> None:
    """Makes a store that was stopped after a commit and before its output was published."""
    from millstream.spark.runner import run

    settings = _settings(template)
    make_store(app, settings.storage.store, 3)
    lines = encoded(given[::2])
    log = LogWriter(log_of(settings.storage.store, "entries"), segment_bytes=4_000)
    for number in range(0, len(lines), 10):
        log.append([Entry.of(lines[number : number + 10], f"request-{number}", number)])
    log.close()
    write_files(template.parent / "in", encoded(given[1::2]), 4)

    def stop(point: str, batch: int) -> None:
        if (point, batch) == ("batch-recorded", LAST_BATCH):
            raise MillstreamError("stopped by this fault run")

    try:
        with at_points(stop):
            run(app, settings, context=spark)
    except MillstreamError as error:
        if "stopped by this fault run" not in str(error):
            raise
    else:
        raise AssertionError("the application ended before it could be stopped")
    home = Home.open(settings.storage.store)
    epoch, store = int(read_record(home.path / "epoch") or b""), home.store()
    for number in range(store.shards):  # an empty commit writes the fence file
        store.shard(number).commit(Fence(epoch, LAST_BATCH, 1_000_000), {})
    store.close()


def _one(
    spark: Any, app: ms.App, folder: Path, kind: str, events: list[Event], random: Random
) -> Case:
    """Damage one file of this kind, verify, start, compare."""
    from millstream.service.app_description import describe_app
    from millstream.spark.runner import run
    from millstream.verifying.store import verify

    path = random.choice(sorted(_files(folder, kind)))
    what = f"{path.relative_to(folder)}: {_damage(path, random, kind)}"
    named = any(_names(str(finding), path) for finding in verify(folder / "store").faults)
    settings, said = _settings(folder), list[str]()
    try:
        run(
            app,
            settings,
            context=spark,
            say=said.append,
            ready=lambda: describe_app(app, settings),
        )
        found = differing(app, events, outcome_of(app, folder))
    except MillstreamError as error:
        clear = _names(str(error), path) and any(word in str(error) for word in REPAIRS)
        return Case(kind, what, named, "refused" if clear else "unclear", words=str(error)[:600])
    if found.lost or found.doubled:
        return Case(kind, what, named, "wrong", found.lost, found.doubled, found.note[:600])
    return Case(kind, what, named, "right")


def _names(text: str, path: Path) -> bool:
    """True if a text names a file, or the folder whose content it is."""
    folder = path.parent
    if str(path) in text or ("/logs/" in str(path) and f"{folder}:" in text):
        return True
    if not folder.name.startswith("shard-"):
        return False
    number = int(folder.name.removeprefix("shard-"))
    return str(folder) in text or f"shard {number} of the store {folder.parent}" in text


def _files(folder: Path, kind: str) -> Iterator[Path]:
    for path in folder.glob(KINDS[kind]):
        if path.stat().st_size:
            yield path


def _damage(path: Path, random: Random, kind: str) -> str:
    """Flip a byte, cut the file or remove it; returns what was done, in words."""
    if kind.startswith("no "):
        path.unlink()
        return "removed"
    content = bytearray(path.read_bytes())
    if kind == "a shard's last commit":
        # The worst effect of one byte: the commit before the last one becomes the last.
        place = min(NUMBER, PAGE + NUMBER, key=lambda at: content[at : at + 8][::-1])
        content[place] += 2
        path.write_bytes(content)
        return f"byte {place} of {len(content)} flipped"
    if random.random() < 0.4:
        length = random.randrange(len(content))
        os.truncate(path, length)
        return f"cut to {length} of {len(content)} bytes"
    # Most bytes of a shard are free space: bytes that are not zero are better targets.
    places = [n for n, byte in enumerate(content) if byte] if path.suffix == ".mdb" else []
    if kind == "a shard's head pages":
        places = [n for n in places if n < 2 * PAGE]
    place = random.choice(places) if places else random.randrange(len(content))
    content[place] ^= random.randrange(1, 256)
    path.write_bytes(content)
    return f"byte {place} of {len(content)} flipped"


DAMAGE = Scenario(FAULT, "found and named, with the repair; never silently wrong", damage)

if __name__ == "__main__":
    _main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
