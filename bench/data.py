"""Input files: the same for the same arguments, generated once and kept in the work folder."""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random

from examples import generate

START = 1_700_000_000_000_000
"""The time of the first event, in microseconds."""


def uniform(work: Path, events: int, keys: int, files: int) -> Path:
    """Events over `keys` equally likely keys, 100 microseconds apart."""
    random = Random(1)
    chosen = (f"k{random.randrange(keys)}" for _ in range(events))
    return made_once(work / f"uniform-{events}-{keys}-{files}", _lines(chosen), events, files)


def padded(work: Path, events: int, keys: int, files: int, length: int) -> Path:
    """The uniform load in lines of `length` bytes, not counting the line's end."""
    random = Random(1)
    chosen = (f"k{random.randrange(keys)}" for _ in range(events))
    lines = (padded_line(line.rstrip("}\n"), length) for line in _lines(chosen))
    return made_once(work / f"padded-{events}-{keys}-{files}-{length}", lines, events, files)


def one_hot(work: Path, events: int, keys: int, share: float, files: int) -> Path:
    """Events of which one key has a share; the others are spread over `keys` keys."""
    random = Random(1)
    chosen = (
        "hot" if random.random() < share else f"k{random.randrange(keys)}" for _ in range(events)
    )
    return made_once(work / f"hot-{events}-{keys}-{share}-{files}", _lines(chosen), events, files)


def poisoned(work: Path, events: int, keys: int, share: float, files: int) -> Path:
    """The uniform load; a share of the events is poison: `n` is negative."""
    random = Random(1)
    bad = Random(2)
    lines = (
        f'{{"key":"k{random.randrange(keys)}","ts":{START + number * 100},'
        f'"n":{-1 if bad.random() < share else number % 7}}}\n'
        for number in range(events)
    )
    return made_once(work / f"poisoned-{events}-{keys}-{share}-{files}", lines, events, files)


def zipf(work: Path, events: int, keys: int, exponent: float, files: int) -> Path:
    """Events over `keys` keys, the k-th in proportion to 1 / k ** exponent."""
    random = Random(1)
    weights = list(itertools.accumulate(1 / k**exponent for k in range(1, keys + 1)))
    numbers = random.choices(range(keys), cum_weights=weights, k=events)
    folder = work / f"zipf-{events}-{keys}-{exponent}-{files}"
    return made_once(folder, _lines(f"k{number}" for number in numbers), events, files)


def scattered(work: Path, events: int, keys: int, files: int) -> Path:
    """Events over keys that are scattered over the order of all keys (see `scattered_key`)."""
    random = Random(1)
    chosen = (scattered_key(random.randrange(keys)) for _ in range(events))
    return made_once(work / f"scattered-{events}-{keys}-{files}", _lines(chosen), events, files)


def scattered_key(number: int) -> str:
    """The key of a number: unique for numbers below 2 ** 32, in an order that helps no store."""
    return f"{number * 2_654_435_761 % 2**32:08x}"


def tweets(work: Path, events: int, days: float, files: int) -> Path:
    """The tweets of examples/generate.py."""
    made = generate.tweets(events, 7, days)
    lines = (json.dumps(record, separators=(",", ":")) + "\n" for record in made)
    return made_once(work / f"tweets-{events}-{days:g}-{files}", lines, events, files)


def single(work: Path) -> Path:
    """Returns a single event, for a run that only creates a store."""
    return made_once(work / "single", _lines(["first"]), 1, 1)


def _lines(keys: Iterable[str]) -> Iterator[str]:
    for number, key in enumerate(keys):
        yield f'{{"key":"{key}","ts":{START + number * 100},"n":{number % 7}}}\n'


def padded_line(begun: str, length: int) -> str:
    room = length - len(begun) - len(',"pad":""}')
    return f'{begun},"pad":"{"x" * room}"}}\n'


def made_once(folder: Path, lines: Iterable[str], events: int, files: int) -> Path:
    """The folder with these lines in `files` files; an existing folder is taken as complete."""
    if folder.exists():
        return folder
    fresh = folder.with_name(f".{folder.name}.writing")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    coming = iter(lines)
    share = -(-events // files)
    for number in range(files):
        with open(fresh / f"part-{number:03d}.json", "w") as file:
            file.writelines(itertools.islice(coming, share))
    fresh.rename(folder)
    return folder


def size_of(folder: Path) -> int:
    """The bytes that the files below a folder take on disk."""
    stats = (path.stat() for path in folder.rglob("*") if path.is_file())
    return sum(stat.st_blocks * 512 for stat in stats)


def length_of(folder: Path) -> int:
    """The bytes in the files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
