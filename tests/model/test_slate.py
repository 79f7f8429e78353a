"""Slates: what may be one, and the table against a sorted dict."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from millstream.codec import decode_value, encode_value
from millstream.errors import CodecError, FunctionError
from millstream.model.slate import NoEntries, Table, is_slate_type

NAMES = st.sampled_from(["", "a", "aa", "ab", "b", "é", "z", "\U0001f600"]) | st.text(max_size=3)
VALUES = st.none() | st.integers() | st.lists(st.integers(), max_size=2)


class Stored:
    """Stored entries for the tests, which count how many of them were read by scans."""

    def __init__(self, entries: dict[str, Any]) -> None:
        self.entries = {name: encode_value(value) for name, value in entries.items()}
        self.read = 0

    def get(self, entry: str) -> bytes | None:
        return self.entries.get(entry)

    def scan(self, start: str, stop: str | None, reverse: bool) -> Iterator[tuple[str, bytes]]:
        for entry in sorted(self.entries, reverse=reverse):
            if start <= entry and (stop is None or entry < stop):
                self.read += 1
                yield entry, self.entries[entry]


def table(entries: dict[str, Any] | None = None) -> Table:
    stored = NoEntries() if entries is None else Stored(entries)
    return Table(stored, encode_value, decode_value)


class TableAgainstDict(RuleBasedStateMachine):
    """A table over any stored entries behaves as a sorted dict does, undo and settle included."""

    @initialize(stored=st.dictionaries(NAMES, VALUES, max_size=6))
    def start(self, stored: dict[str, Any]) -> None:
        self.stored = dict(stored)
        self.table = table(stored)
        self.model = dict(stored)
        self.settled = dict(stored)

    @rule(name=NAMES, value=VALUES)
    def put(self, name: str, value: Any) -> None:
        self.table[name] = value
        self.model[name] = value

    @rule(name=NAMES)
    def discard(self, name: str) -> None:
        self.table.discard(name)
        self.model.pop(name, None)

    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        if name in self.model:
            del self.table[name]
            del self.model[name]
        else:
            with pytest.raises(KeyError):
                del self.table[name]

    @rule(name=NAMES)
    def look(self, name: str) -> None:
        assert (name in self.table) == (name in self.model)
        assert self.table.get(name, "none") == self.model.get(name, "none")
        if name in self.model:
            assert self.table[name] == self.model[name]
        else:
            with pytest.raises(KeyError):
                self.table[name]

    @rule(
        start=NAMES,
        stop=st.none() | NAMES,
        reverse=st.booleans(),
        limit=st.none() | st.integers(0, 4),
    )
    def scan(self, start: str, stop: str | None, reverse: bool, limit: int | None) -> None:
        names = sorted(
            (n for n in self.model if start <= n and (stop is None or n < stop)), reverse=reverse
        )
        wanted = [(name, self.model[name]) for name in names][:limit]
        assert list(self.table.scan(start, stop, reverse=reverse, limit=limit)) == wanted

    @rule()
    def settle(self) -> None:
        self.table.settle()
        self.settled = dict(self.model)

    @rule()
    def undo(self) -> None:
        self.table.undo()
        self.model = dict(self.settled)

    @invariant()
    def whole(self) -> None:
        assert dict(self.table.scan()) == self.model

    @invariant()
    def changes_turn_the_stored_entries_into_the_table(self) -> None:
        after = dict(self.stored)
        for name, value in self.table.changes().items():
            if value is None:
                after.pop(name, None)
            else:
                after[name] = decode_value(value)
        assert after == self.model


TestTableAgainstDict = TableAgainstDict.TestCase


def test_what_is_read_is_a_copy() -> None:
    """Changing a value that was read changes nothing until it is assigned."""
    one = table({"a": [1]})
    one["a"].append(2)
    one.get("a").append(2)
    for _, value in one.scan():
        value.append(2)
    assert one["a"] == [1]


def test_what_is_stored_is_a_copy() -> None:
    """Changing a value after it was assigned does not change the entry."""
    one, value = table(), [1]
    one["a"] = value
    value.append(2)
    assert one["a"] == [1]


def test_none_is_a_value() -> None:
    """An entry that holds None is there; only a missing one takes the default."""
    one = table()
    one["a"] = None
    assert "a" in one
    assert one.get("a", 5) is None
    assert one.get("b", 5) == 5


def test_a_scan_reads_no_more_than_it_yields() -> None:
    """A limit keeps the store from being read to its end."""
    stored = Stored({f"{n:03d}": n for n in range(100)})
    one = Table(stored, encode_value, decode_value)
    assert [name for name, _ in one.scan("050", limit=3)] == ["050", "051", "052"]
    assert stored.read == 3


def test_a_scan_looks_at_no_changes_outside_its_range() -> None:
    """However many entries were changed, names are sorted once, not for each scan."""

    class Named(str):
        """A name that counts how often it is compared."""

        compared = 0
        __slots__ = ()
        __hash__ = str.__hash__

        def __lt__(self, other: str) -> bool:
            Named.compared += 1
            return str.__lt__(self, other)

    here = table()
    for number in range(4_096):
        here[Named(f"{number:04d}")] = number
    assert [value for _, value in here.scan("0100", "0103")] == [100, 101, 102]
    Named.compared = 0
    for number in range(100):
        here[Named(f"{number:04d} more")] = number
        assert [value for _, value in here.scan("0100", "0103")] == [100, 101, 102]
    assert Named.compared < 100 * 50


def test_a_scan_under_way_does_not_see_changes() -> None:
    """The table may be changed while it is gone through."""
    one = table({"a": 1, "b": 2, "c": 3})
    one["d"] = 4
    for name, value in one.scan():
        one.discard(name)
        one["x" + name] = value
    assert dict(one.scan()) == {"xa": 1, "xb": 2, "xc": 3, "xd": 4}


def test_entries_are_named_by_text() -> None:
    """A number is no name: the error says so."""
    one = table()
    with pytest.raises(FunctionError, match=r"^a table's entries are named by text; got int 5$"):
        one[5] = 1  # type: ignore[index]
    with pytest.raises(FunctionError, match="named by text; got NoneType None"):
        one.get(None)  # type: ignore[arg-type]


def test_a_value_that_json_cannot_carry_is_refused_at_once() -> None:
    """The assignment itself fails, and leaves the entry as it was."""
    one = table({"a": 1})
    with pytest.raises(CodecError):
        one["a"] = math.nan
    assert one["a"] == 1
    assert one.changes() == {}


def test_slate_types() -> None:
    """A slate is a dict, a dataclass or a table; nothing else, and no instance of one."""

    @dataclass
    class Count:
        count: int = 0

    assert all(is_slate_type(kind) for kind in (dict, Count, Table))
    others: list[object] = [list, int, str, object, Count(), {}, None]
    assert not any(is_slate_type(kind) for kind in others)
