"""Whole applications and event sequences made from small building blocks, for Hypothesis.

`cases()` is the one strategy to use: it gives a `Case`, which builds its `App` and holds its events
in batches. Everything a function does is decided by plain parameters (`MapSpec`, `UpdateSpec`), so
functions are deterministic, a failing case prints as something that can be read and pasted, and
`millstream.spark.pickling` can carry it to a worker.

No application runs for ever: an event carries its hops, one more with every function that makes a
new value, and past `MOST_HOPS` nothing more is emitted. A function that passes its input's value on
does so only along edges that close no cycle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Literal
from zlib import crc32

from hypothesis import strategies as st

from millstream.codec import encode_value
from millstream.model.app import App
from millstream.model.event import Clock, Event, Timer, emit, forget, timer
from millstream.model.slate import Table
from millstream.model.workflow import Order, Workflow

MOST_HOPS = 3
MOST_ALARMS = 3
"""How many timers a slate's timer function may set."""

KEYS = ("a", "b", "", "\x00", "a\x00", "a\x00b", "\x00\xff", "é", "😀", "k" * 600, "k" * 601, "ab")
VALUES: tuple[Any, ...] = (
    *({"h": 0, "n": n} for n in range(6)),
    *({"n": n, "list": [n, {"z": None, "a": 1.5}], "d": {"é": "\x00"}} for n in range(3)),
    *([0, n] for n in range(3)),
    *(b"\x00%d" % n for n in range(3)),
    *("", "text", "😀", None, True, 0, -1, 1.5, {}, [], b"", b"\x00", 2**53 + 1),
)

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
    """How much later than its input; None: left out."""
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

    def set(self, now: int) -> Any:
        """The effect; on the wall's clock it counts seconds."""
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
    """Whether it has a timer function."""
    timer_failure: Failure | None = None
    forgets: int = 0
    """Forget the slate for one in so many inputs (and timers); 0: never."""


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


@dataclass(frozen=True)
class SourceSpec:
    name: str
    lateness: int = 0
    idle: int = 10**15


@dataclass(frozen=True)
class Case:
    """An application and its input, and how to run it."""

    order: Order
    sources: tuple[SourceSpec, ...]
    functions: tuple[Spec, ...]
    delays: tuple[tuple[str, int], ...]
    batches: tuple[tuple[Event, ...], ...]
    shards: int = 1
    tasks: int = 1

    def app(self) -> App:
        app = App("case", order=self.order)
        for source in self.sources:
            app.source(
                source.name, lateness=f"{source.lateness}us", idle=f"{source.idle}us", ts="ts"
            )
        for spec in self.functions:
            if isinstance(spec, UpdateSpec):
                app.update(
                    *spec.subscribes,
                    publishes=spec.publishes,
                    name=spec.name,
                    slate={"dict": dict, "dataclass": Memo, "table": Table}[spec.slate],
                    ttl=None if spec.ttl is None else f"{spec.ttl}us",
                    on_timer=_timer_function(spec) if spec.timed else None,
                )(_update_function(spec))
            else:
                app.map(*spec.subscribes, publishes=spec.publishes, name=spec.name)(
                    _map_function(spec)
                )
        published = {stream for spec in self.functions for stream in spec.publishes}
        for stream in sorted(published):
            app.output(stream)
        for stream, delay in self.delays:
            app.stream(stream, delay=f"{delay}us")
        return app

    def workflow(self) -> Workflow:
        return self.app().checked()

    @property
    def events(self) -> list[Event]:
        return [event for batch in self.batches for event in batch]

    @property
    def has_timers(self) -> bool:
        return any(isinstance(spec, UpdateSpec) and spec.timed for spec in self.functions)


# What the functions do -------------------------------------------------------------------------


def _map_function(spec: MapSpec) -> Callable[[Event], Any]:
    def a_map(event: Event) -> Any:
        return _returned(spec, event, _of_map(spec, event))

    return a_map


def _update_function(spec: UpdateSpec) -> Callable[[Event, Any], Any]:
    def an_update(event: Event, slate: Any) -> Any:
        return _returned(spec, event, _of_update(spec, event, slate))

    return an_update


def _timer_function(spec: UpdateSpec) -> Callable[[Timer, Any], Any]:
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
    if spec.alarms and again < MOST_ALARMS:
        _write(slate, "alarms", again + 1)
        alarm = spec.alarms[number % len(spec.alarms)]
        yield alarm.set(fired.ts + 1)
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
    """Put into the slate what JSON cannot carry, or what a dataclass would not take back."""
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
    """How many functions an event has come through."""
    if isinstance(value, dict):
        value = value.get("h", 0)
    elif isinstance(value, list | bytes):
        value = value[0] if value else 0
    return value if type(value) is int and 0 <= value <= MOST_HOPS else 0


# Strategies ------------------------------------------------------------------------------------

_SENDS: tuple[Sends, ...] = (
    "left out", "dict", "changed, left out", "tuple", "bytes", "memory",
)  # fmt: skip
_KEEPS: tuple[Keeps, ...] = (
    "chain", "list", "tuple", "int keys", "passing tuple", "shared", "event", "large",
)  # fmt: skip
_MAP_FAILS: tuple[Fails, ...] = (
    "at once", "after emitting", "wrong thing", "early ts", "unknown stream", "whole key",
    "broken key", "bad value", "int key in value", "changed value", "lone forget",
)  # fmt: skip
_SLATE_FAILS: tuple[Fails, ...] = (
    "after the slate", "object", "nan", "passing nan", "great int", "wrong type", "early timer",
)  # fmt: skip
_SOURCES = ("s0", "s1")
_STREAMS = ("t0", "t1", "t2", "t3", "t4", "t5")


def _sometimes(strategy: st.SearchStrategy[Any], share: int) -> st.SearchStrategy[Any]:
    """None, but for one in about `share`."""
    return st.integers(1, share).flatmap(lambda n: strategy if n == share else st.none())


_every = st.integers(1, 3)
_send_parts = st.tuples(
    st.sampled_from(_SENDS),
    st.sampled_from((None, None, None, "*", "a", "\x00")),
    st.sampled_from((None, None, None, 1, 2, 9)),
    _every,
)
_failures = st.builds(Failure, st.sampled_from(_MAP_FAILS), st.integers(2, 4))
_update_failures = st.builds(Failure, st.sampled_from(_MAP_FAILS + _SLATE_FAILS), st.integers(2, 4))
_timer_failures = st.builds(
    Failure,
    st.sampled_from(("at once", "after emitting", "early ts", "nan", "wrong type", "wrong thing")),
    st.integers(2, 3),
)


def _alarms(wall: bool) -> st.SearchStrategy[list[Alarm]]:
    clocks: tuple[Clock, ...] = ("event", "wall") if wall else ("event",)
    names = st.sampled_from(("", "one", "two"))
    alarm = st.builds(Alarm, names, st.integers(0, 12), _every, st.sampled_from(clocks))
    return st.lists(alarm, min_size=1, max_size=3)


@st.composite
def _functions(draw: st.DrawFn, cyclic: bool, timers: bool, wall: bool) -> tuple[Spec, ...]:
    """Functions f0, f1, ... with streams between them.

    Without cycles: f_i publishes streams t_j with j >= i and subscribes to t_j with j < i.
    """
    count = draw(st.integers(1, 6))
    specs: list[Spec] = []
    for number in range(count):
        published = [stream for spec in specs for stream in spec.publishes]
        before = [s for s in published if s < f"t{number}"] if not cyclic else _STREAMS[:count]
        after = _STREAMS[number:count] if not cyclic else _STREAMS[:count]
        subscribes = draw(st.lists(st.sampled_from((*before, *_SOURCES)), min_size=1, max_size=3))
        streams = draw(st.lists(st.sampled_from(after), min_size=number < count - 1, max_size=3))
        sends = tuple(Send(stream, *draw(_send_parts)) for stream in streams)
        shape = (f"f{number}", _with((), *subscribes), sends)
        if draw(st.integers(0, 2)) == 0:
            specs.append(MapSpec(*shape, draw(_sometimes(_failures, 4)), draw(st.booleans())))
        else:
            specs.append(draw(_updates(shape, timers, wall)))
    if cyclic:
        specs[0] = replace(specs[0], subscribes=_with(specs[0].subscribes, "t0", "s0"))
        specs[-1] = replace(specs[-1], sends=(*specs[-1].sends, Send("t0")))
    specs = _connected(specs)
    return tuple(_damped(reversed(specs) if draw(st.booleans()) else specs))


@st.composite
def _updates(draw: st.DrawFn, shape: tuple[Any, ...], timers: bool, wall: bool) -> UpdateSpec:
    timed = timers and draw(st.booleans())
    return UpdateSpec(
        *shape,
        draw(_sometimes(_update_failures, 3)),
        draw(st.booleans()),
        draw(st.sampled_from(("dict", "dataclass", "table", "dict"))),
        draw(st.sampled_from(_KEEPS)),
        draw(st.sampled_from((None, None, 0, 3, 15))),
        tuple(draw(_alarms(wall))) if timed else (),
        timed,
        draw(_sometimes(_timer_failures, 3)) if timed else None,
        draw(st.sampled_from((0, 0, 0, 2, 5))),
    )


def _with(names: tuple[str, ...], *more: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*names, *more)))


def _connected(specs: list[Spec]) -> list[Spec]:
    """Without subscriptions to streams that nobody publishes."""
    known = {*_SOURCES, *(stream for spec in specs for stream in spec.publishes)}
    return [
        replace(spec, subscribes=tuple(s for s in spec.subscribes if s in known) or ("s0",))
        for spec in specs
    ]


def _damped(specs: Any) -> list[Spec]:
    """Along a cycle, every send makes a new value, with one hop more."""
    specs = list(specs)
    readers = {
        stream: [spec.name for spec in specs if stream in spec.subscribes] for stream in _STREAMS
    }
    leads = {spec.name: {n for s in spec.publishes for n in readers[s]} for spec in specs}
    for _ in specs:
        for name, reached in leads.items():
            leads[name] = reached.union(*(leads[other] for other in reached))
    damped: list[Spec] = []
    for spec in specs:
        sends = tuple(
            replace(send, value="dict")
            if "left out" in send.value
            and any(spec.name == r or spec.name in leads[r] for r in readers[send.stream])
            else send
            for send in spec.sends
        )
        damped.append(replace(spec, sends=sends))
    return damped


@st.composite
def _batches(draw: st.DrawFn, sources: tuple[SourceSpec, ...]) -> tuple[tuple[Event, ...], ...]:
    keys = draw(st.lists(st.sampled_from(KEYS), min_size=1, max_size=5, unique=True))
    events = draw(
        st.lists(
            st.builds(
                Event,
                st.sampled_from([source.name for source in sources]),
                st.integers(-3, 40),
                st.sampled_from(keys),
                st.sampled_from(VALUES),
            ),
            min_size=draw(st.sampled_from((1, 5, 10))),
            max_size=20,
        )
    )
    if draw(st.booleans()):
        events.sort(key=lambda event: event.ts)
    if draw(st.integers(0, 3)) == 3:
        events += events[:2]  # the very same events once more
    cuts = draw(st.lists(st.integers(0, len(events)), max_size=4))
    edges = [0, *sorted(cuts), len(events)]
    return tuple(tuple(events[a:b]) for a, b in pairwise(edges))


Delays = Literal["none", "feedback", "some"]


@st.composite
def cases(
    draw: st.DrawFn,
    *,
    order: Order = "event-time",
    cyclic: bool = False,
    delays: Delays = "none",
    timers: bool = True,
    late: bool = True,
    wall: bool = False,
) -> Case:
    """An application with its input.

    `delays="feedback"`: every stream that closes a cycle has a delay; "some": perhaps one of them.
    `late`: whether events may be late (in event-time order). `wall`: whether timers may be on the
    wall's clock.
    """
    with_timers = timers and draw(st.booleans())
    functions = draw(_functions(cyclic, with_timers, wall))
    # With timers no source falls idle: all idle, time would go on past the last event, as it does
    # not in the reference.
    idle = (10**15,) if with_timers or not late else (10**15, 1_500_000)
    lateness = (0, 5, 100) if late else (100,)
    sources = tuple(
        SourceSpec(name, draw(st.sampled_from(lateness)), draw(st.sampled_from(idle)))
        for name in _SOURCES[: draw(st.integers(1, 2))]
    )
    named = {source.name for source in sources}
    functions = tuple(
        replace(spec, subscribes=tuple(s for s in spec.subscribes if s in named or s[0] == "t"))
        for spec in functions
    )
    functions = tuple(replace(spec, subscribes=spec.subscribes or ("s0",)) for spec in functions)
    case = Case(
        order,
        sources,
        functions,
        (),
        draw(_batches(sources)),
        draw(st.integers(1, 7)),
        draw(st.integers(1, 3)),
    )
    if delays == "none":
        return case
    closing = sorted({stream for _, stream, _ in case.workflow().feedback})
    chosen = closing if delays == "feedback" else closing[:1]
    delayed = {stream: draw(st.sampled_from((1, 4, 15))) for stream in chosen}
    return replace(
        case,
        functions=tuple(_later(spec, delayed) for spec in functions),
        delays=tuple(delayed.items()),
    )


def _later(spec: Spec, delays: dict[str, int]) -> Spec:
    """With times that keep to the delays, but for those of one microsecond: they stay too small."""
    sends = tuple(
        replace(send, later=send.later + delays.get(send.stream, 0))
        if send.later is not None and send.later > 1
        else send
        for send in spec.sends
    )
    return replace(spec, sends=sends)
