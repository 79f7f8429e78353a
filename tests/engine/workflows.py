"""The functions of a generated workflow, decided by plain parameters.

Everything a function does follows from its `MapSpec` or `UpdateSpec`, so functions are
deterministic, a failing case prints as something that can be read and pasted, and
`millstream.spark.function_pickle` can carry it to a worker. `workflow_case` builds applications of
them, and `workflow_cases.cases()` is the one strategy to use.

No application runs for ever: an event carries its hops, one more with every function that makes a
new value, and past `MOST_HOPS` nothing more is emitted. A function that passes its input's value on
does so only along edges that close no cycle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal
from zlib import crc32

from millstream.codec import encode_value
from millstream.model.event import Clock, Event, Timer, emit, forget, timer
from millstream.model.slate import Table

MOST_HOPS = 3
MOST_ALARMS = 3
"""The most timers that a slate's timer function may set, unless it is endless."""
PERIOD = 200
"""How far ahead it then sets them. It is longer than the effects of a timer take, which would
otherwise move event time on to the next timer for ever."""

Sends = Literal["left out", "changed, left out", "dict", "tuple", "bytes", "memory"]
Keeps = Literal["chain", "list", "tuple", "int keys", "passing tuple", "shared", "event", "large"]
Fails = Literal[
    "at once", "after the slate", "after emitting", "wrong thing", "early ts", "unknown stream",
    "whole key", "broken key", "bad value", "int key in value", "object", "nan", "great int",
    "passing nan", "wrong type", "changed value", "lone forget", "early timer",
]  # fmt: skip


@dataclass(frozen=True)
class Send:
    """An event to emit, for one in `every` inputs."""

    stream: str
    value: Sends = "dict"
    key: str | None = None
    """None: the input's; "*": one of its own for each of three residues; else this one."""
    later: int | None = None
    """The delay after the input; None: left out."""
    every: int = 1


@dataclass(frozen=True)
class Failure:
    """For one in `every` inputs, the function fails in this way."""

    how: Fails
    every: int


@dataclass(frozen=True)
class Alarm:
    """A timer to set, for one in `every` inputs, and again by the timer function."""

    name: str
    after: int
    every: int = 1
    clock: Clock = "event"
    at_end: bool = False

    def set(self, now: int) -> Any:
        """The effect; on the wall's clock it counts seconds."""
        if self.at_end:
            return timer(at="end", name=self.name)
        if self.clock == "wall":
            return timer(after=f"{self.after}s", name=self.name, clock="wall")
        return timer(at=now + self.after, name=self.name)


@dataclass(frozen=True)
class MapSpec:
    name: str
    subscribes: tuple[str, ...]
    sends: tuple[Send, ...] = ()
    failure: Failure | None = None
    as_list: bool = False
    """Return a list of effects rather than yield them."""

    @property
    def publishes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(send.stream for send in self.sends))


@dataclass(frozen=True)
class UpdateSpec(MapSpec):
    slate: Literal["dict", "dataclass", "table"] = "dict"
    keeps: Keeps = "chain"
    ttl: int | None = None
    alarms: tuple[Alarm, ...] = ()
    timed: bool = False
    """True if it has a timer function."""
    timer_failure: Failure | None = None
    forgets: int = 0
    """Forget the slate for one in so many inputs (and timers); 0: never."""
    endless: bool = False
    """True if the timer function always sets another timer."""


Spec = MapSpec | UpdateSpec


@dataclass
class Memo:
    """A dataclass slate: typed fields, some of them changed by JSON and back."""

    chain: int = 0
    hops: int = 0
    alarms: int = 0
    seen: list[int] = field(default_factory=list)
    pair: tuple[int, int] = (0, 0)
    tally: dict[int, int] = field(default_factory=dict)
    note: int | None = None
    padding: str = ""


# What the functions do -------------------------------------------------------------------------


def map_function(spec: MapSpec) -> Callable[[Event], Any]:
    def a_map(event: Event) -> Any:
        return _returned(spec, event, _of_map(spec, event))

    return a_map


def update_function(spec: UpdateSpec) -> Callable[[Event, Any], Any]:
    def an_update(event: Event, slate: Any) -> Any:
        return _returned(spec, event, _of_update(spec, event, slate))

    return an_update


def timer_function(spec: UpdateSpec) -> Callable[[Timer, Any], Any]:
    def a_timer(timer: Timer, slate: Any) -> Any:
        return _of_timer(spec, timer, slate)

    return a_timer


def _returned(spec: MapSpec, event: Event, effects: Iterator[Any]) -> Any:
    if _fails(spec.failure, number_of(event.value)) == "lone forget":
        return forget()
    return list(effects) if spec.as_list else effects


def _of_map(spec: MapSpec, event: Event) -> Iterator[Any]:
    number, hops = number_of(event.value), hops_of(event.value)
    failure = _fails(spec.failure, number)
    yield from _fail_first(failure, event)
    yield from _sent(spec, event, number, hops, None)
    yield from _fail_last(failure, event.ts)


def _of_update(spec: UpdateSpec, event: Event, slate: Any) -> Iterator[Any]:
    number, hops = number_of(event.value), hops_of(event.value)
    failure = _fails(spec.failure, number)
    yield from _fail_first(failure, event)
    _remember(spec, event, slate, number)
    _write(slate, "hops", max(hops, _read(slate, "hops", 0)))
    _spoil(spec, failure, slate)
    if failure == "after the slate":
        raise ValueError(failure)
    yield from _sent(spec, event, number, hops, slate)
    for alarm in spec.alarms:
        if number % alarm.every == 0:
            yield alarm.set(event.ts)
    if failure == "early timer":
        yield timer(at=event.ts - 1)
    yield from _fail_last(failure, event.ts)
    if spec.forgets and number % spec.forgets == 0:
        yield forget()
    _chain(slate, "end")  # what is changed after the last effect counts too


def _of_timer(spec: UpdateSpec, fired: Timer, slate: Any) -> Iterator[Any]:
    _chain(slate, fired)
    number, hops = _read(slate, "chain", 0), _read(slate, "hops", 0)
    failure = _fails(spec.timer_failure, number)
    if failure == "at once":
        raise ValueError(failure)
    _spoil(spec, failure, slate)
    event = Event("", fired.ts, fired.key, None)
    yield from _sent(spec, event, number, hops, slate)
    again = _read(slate, "alarms", 0)
    if spec.alarms and (again < MOST_ALARMS or spec.endless):
        _write(slate, "alarms", again + 1)
        alarm = spec.alarms[number % len(spec.alarms)]
        yield alarm.set(fired.ts + (PERIOD if spec.endless else 1))
    yield from _fail_last(failure, fired.ts)
    if spec.forgets and number % spec.forgets == 0:
        yield forget()


def _fails(failure: Failure | None, number: int) -> str | None:
    return failure.how if failure is not None and number % failure.every == 0 else None


def _fail_first(failure: str | None, event: Event) -> Iterator[Any]:
    if failure == "at once":
        raise ValueError(failure)
    tried = isinstance(event.value, dict) and "tried" in event.value
    if failure == "changed value" and not tried:  # a second try with the changed value would pass
        _change(event.value)
        raise ValueError(failure)
    yield from ()


def _fail_last(failure: str | None, ts: int) -> Iterator[Any]:
    if failure == "after emitting":
        raise ValueError(failure)
    if failure == "wrong thing":
        yield "wrong"
    elif failure == "early ts":
        yield emit("t0", ts=ts)
    elif failure == "unknown stream":
        yield emit("nowhere")
    elif failure == "whole key":
        yield emit("t0", key=5)
    elif failure == "broken key":
        yield emit("t0", key="\ud800")
    elif failure == "bad value":
        yield emit("t0", value=object())
    elif failure == "int key in value":
        yield emit("t0", value={1: 1})


def _spoil(spec: UpdateSpec, failure: str | None, slate: Any) -> None:
    """Puts a value into the slate that JSON cannot carry, or that a dataclass would not accept."""
    spoiler: Any = {
        "object": object(),
        "nan": float("nan"),
        "passing nan": float("inf"),
        "great int": 1 << 80,
        "wrong type": "text",
    }.get(failure or "")
    if spoiler is not None:
        _write(slate, "note", spoiler)
    elif spec.keeps != "large" and _read(slate, "note", None) is not None:
        # Only an engine that does not look between two events would come here: the event that
        # spoiled the slate has failed. (A large slate is looked at when its last event is done.)
        _write(slate, "note", None)


def _sent(spec: MapSpec, event: Event, number: int, hops: int, slate: Any) -> Iterator[Any]:
    for send in spec.sends:
        if number % send.every:
            continue
        given: dict[str, Any] = {}
        if send.value == "changed, left out":
            _change(event.value)
        elif send.value != "left out":
            if hops >= MOST_HOPS:
                continue
            given["value"] = _value(send.value, hops + 1, number, slate)
        if send.key is not None:
            given["key"] = f"*{number % 3}" if send.key == "*" else send.key
        if send.later is not None:
            given["ts"] = event.ts + send.later
        yield emit(send.stream, **given)
    if slate is not None:
        _chain(slate, "sent")


def _value(kind: Sends, hops: int, number: int, slate: Any) -> Any:
    if kind == "tuple":
        return (hops, number % 4, "é")
    if kind == "bytes":
        return bytes([hops]) + b"%d" % (number % 4)
    if kind == "memory" and slate is not None:
        return {"h": hops, "chain": _read(slate, "chain", 0), "seen": _read(slate, "seen", [])}
    return {"n": number % 4, "h": hops}


def _change(value: Any) -> None:
    """Change a value in place, where it can be."""
    if isinstance(value, dict):
        value["tried"] = 1
    elif isinstance(value, list):
        value.append("tried")


def _remember(spec: UpdateSpec, event: Event, slate: Any, number: int) -> None:
    """Change the slate so that it depends on the order of the events and on what it held."""
    _chain(slate, (event.stream, event.ts, number))
    keeps, small = spec.keeps, number % 3
    if isinstance(slate, Table):
        _keep_entries(slate, keeps, small, event.value)
    elif isinstance(slate, Memo):
        slate.seen = [*slate.seen, small][-5:]
        slate.pair = (slate.pair[1], small)
        slate.tally[small] = slate.tally.get(small, 0) + 1
        if keeps == "large":
            slate.padding = "x" * 300
    else:
        _keep_in_dict(slate, keeps, small, event.value)


def _keep_in_dict(slate: dict[Any, Any], keeps: Keeps, small: int, value: Any) -> None:
    if keeps == "list":
        slate.setdefault("seen", []).append(small)
        del slate["seen"][:-5]
    elif keeps == "tuple":
        _chain(slate, type(slate.get("pair")).__name__)
        slate["pair"] = (small, [small])
    elif keeps == "int keys":
        if small == 0:
            slate[7] = small  # refused: it would come back as "7"
    elif keeps == "passing tuple":
        found = slate.pop("passing", None)
        _chain(slate, repr(found))
        if found is None:
            slate["passing"] = {"in": (small,)}
    elif keeps == "shared":  # two names for one list, until it is written and read
        if "one" not in slate:
            slate["one"] = slate["two"] = []
        slate["one"].append(small)
        _chain(slate, slate["two"])
        if len(slate["one"]) > 3:
            del slate["one"], slate["two"]
    elif keeps == "large":
        slate["padding"] = "x" * (200 + 100 * small)
        slate["pair"] = [*slate.get("pair", ()), small][-3:]
    elif keeps == "event":
        slate["last"] = value if not isinstance(value, bytes) else None
        if isinstance(slate["last"], dict):
            slate["last"]["kept"] = small


def _keep_entries(table: Table, keeps: Keeps, small: int, value: Any) -> None:
    name = ("", "é", "a\x00", "b" * 600)[small]
    table[name] = [table.get(name, 0), small] if keeps == "tuple" else value
    if keeps == "list":
        _chain(table, [entry for entry, _ in table.scan("", "c", reverse=small == 1, limit=2)])
    elif keeps == "shared" and "é" in table:
        del table["é"]
    elif keeps == "event":
        table.discard("a\x00")
        _chain(table, [entry for entry, _ in table.scan("a", reverse=True)])


def _chain(slate: Any, seen: Any) -> None:
    """Let what was seen go into a hash of all that was seen, so that order counts."""
    _write(slate, "chain", crc32(repr(seen).encode(), _read(slate, "chain", 0)))


def _read(slate: Any, name: str, default: Any) -> Any:
    if isinstance(slate, Memo):
        return getattr(slate, name)
    return slate.get(name, default)


def _write(slate: Any, name: str, value: Any) -> None:
    if isinstance(slate, Memo):
        setattr(slate, name, value)
    else:
        slate[name] = value


def number_of(value: Any) -> int:
    """A number that stands for a value, the same in every process."""
    return crc32(encode_value(value))


def hops_of(value: Any) -> int:
    """Returns the number of functions that an event has passed through."""
    if isinstance(value, dict):
        value = value.get("h", 0)
    elif isinstance(value, list | bytes):
        value = value[0] if value else 0
    return value if type(value) is int and 0 <= value <= MOST_HOPS else 0
