"""The answers that a run left, by key, and how they differ from those of a plain loop.

A run may write an answer more than once, as it grows: which one counts is the reader's business.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from millstream.stores.home import Home
from millstream.stores.progress import decoded
from millstream.stores.reader import SlateReader

Answer = Mapping[str, Any]
CLOSE = 1e-9
"""The allowed relative difference of a mean from the exact one: engines add in different orders."""


def written_once(folder: Path) -> dict[str, Any]:
    """Lines of keys and their answers, each of which comes once."""
    return gathered([_pair(line) for line in _lines(folder)])


def written_in_parts(folder: Path) -> dict[str, Any]:
    """Lines of keys and their answers for a part of the input each: they are added up."""
    found: dict[str, Any] = {}
    for line in _lines(folder):
        key, part = _pair(line)
        found[key] = _added(found[key], part) if key in found else part
    return found


def _added(one: Any, other: Any) -> Any:
    """The sum of two numbers, or of each two of two lists.

    >>> _added([1, 2], [3, 4])
    [4, 6]
    """
    if isinstance(one, list):
        return [a + b for a, b in zip(one, other, strict=True)]
    return one + other


def written_last(folder: Path) -> dict[str, Any]:
    """Lines of keys and their answers as they grow, `[key, answer, number]`; the greatest number
    counts. Lines without a number come once."""
    found: dict[str, Any] = {}
    for line in _lines(folder):
        if isinstance(line, dict) or len(line) < 3:
            return written_once(folder)
        if line[0] not in found or line[2] > found[line[0]][2]:
            found[line[0]] = line
    return {key: line[1] for key, line in found.items()}


def written_changes(folder: Path) -> dict[str, Any]:
    """Pathway's changes: a row was added (`diff` 1), or is no more (-1)."""
    rows: Counter[str] = Counter()
    for line in _lines(folder):
        rows[json.dumps(_pair(line))] += line["diff"]
    return gathered([json.loads(pair) for pair in (+rows).elements()])


def sessions(folder: Path) -> dict[str, Any]:
    """Returns the output of Millstream's element for sessions."""
    found = [line["value"] for line in _lines(folder)]
    return gathered([(f"{one['key']} {one['from'] // 1_000}", one["events"]) for one in found])


def slates(store: Path, update: str = "answer") -> dict[str, Any]:
    """The slates of a store: their `value`, or their only field."""
    with SlateReader(store) as reader:
        found = {slate.key: slate.value for slate in reader.scan(update)}
    return {
        key: slate["value"] if "value" in slate else next(iter(slate.values()))
        for key, slate in found.items()
    }


def batches(store: Path) -> int:
    """The batches that were committed to a store of Millstream, each flushed to disk."""
    return decoded(Home.open(store).read_progress()).batch + 1


def snapshots(recovery: Path) -> int:
    """The snapshots of Bytewax that are complete: it numbers their epochs from 1."""
    last = 0
    for path in recovery.glob("*.sqlite3"):
        with closing(sqlite3.connect(path)) as database:
            ((epoch,),) = database.execute("select max(commit_epoch) from commits")
            last = max(last, epoch or 0)
    return last


def gathered(pairs: Iterable[Sequence[Any]]) -> dict[str, Any]:
    """Answers by key. Of counts of named items, a key may have several; their names are listed. Any
    other key that comes twice has a wrong answer.

    >>> gathered([("a", 1), ("b", [2, "x"]), ("b", [2, "w"])])
    {'a': 1, 'b': [2, ['w', 'x']]}
    """
    found: dict[str, Any] = {}
    for key, value in pairs:
        if isinstance(value, list) and isinstance(value[1], str):
            count, names = found.get(key, (value[0], []))
            found[key] = [max(count, value[0]), sorted([*names, value[1]])]
        else:
            found[key] = "twice" if key in found else value
    return found


def difference(expected: Answer, found: Answer) -> str:
    """Says how the found answers are wrong; empty if they are not."""
    missing = expected.keys() - found.keys()
    more = found.keys() - expected.keys()
    wrong = [key for key in expected.keys() & found.keys() if not same(expected[key], found[key])]
    if not missing and not more and not wrong:
        return ""
    examples = ", ".join(
        f"{key}: {found.get(key, 'none')} and not {expected.get(key, 'none')}"
        for key in sorted([*missing, *more, *wrong])[:3]
    )
    return f"{len(missing)} missing, {len(more)} too many, {len(wrong)} wrong: {examples}"


def same(expected: Any, found: Any) -> bool:
    """True if an answer is the expected one; lists by their items, numbers nearly.

    >>> same([1, 2.0], (1, 2)), same(3, 4), same(0.1 + 0.2, 0.3)
    (True, False, True)
    """
    if isinstance(expected, list | tuple) and isinstance(found, list | tuple):
        return len(expected) == len(found) and all(map(same, expected, found))
    if isinstance(expected, int | float) and isinstance(found, int | float):
        return math.isclose(expected, found, rel_tol=CLOSE)
    return bool(expected == found)


def _pair(line: Any) -> tuple[str, Any]:
    """The key and the answer of a line, which is a list or has names."""
    if isinstance(line, list):
        return line[0], line[1]
    if "auction" in line:
        return str(line["key"]), [line["value"], line["auction"]]
    return str(line["key"]), line["value"]


def _lines(folder: Path) -> Iterator[Any]:
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        hidden = any(part.startswith(("_", ".", "done")) for part in parts)
        if path.is_file() and not hidden:
            with path.open("rb") as file:
                yield from map(json.loads, file)
