"""Random cases: workflows of `workflows`, their events, and how those fall into batches."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any, Literal

from engine.workflow_case import Case, SourceSpec
from engine.workflows import (
    Alarm,
    Fails,
    Failure,
    Keeps,
    MapSpec,
    Send,
    Sends,
    Spec,
    UpdateSpec,
)
from hypothesis import strategies as st

from millstream.errors import DefinitionError
from millstream.model.event import Clock, Event
from millstream.model.workflow import Order

KEYS = ("a", "b", "", "\x00", "a\x00", "a\x00b", "\x00\xff", "é", "😀", "k" * 600, "k" * 601, "ab")
VALUES: tuple[Any, ...] = (
    *({"h": 0, "n": n} for n in range(6)),
    *({"n": n, "list": [n, {"z": None, "a": 1.5}], "d": {"é": "\x00"}} for n in range(3)),
    *([0, n] for n in range(3)),
    *(b"\x00%d" % n for n in range(3)),
    *("", "text", "😀", None, True, 0, -1, 1.5, {}, [], b"", b"\x00", 2**53 + 1),
)

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
    alarm |= st.builds(Alarm, names, st.just(0), _every, at_end=st.just(True))
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
        # On the wall's clock there would be no end of it.
        timed and not wall and draw(st.booleans()),
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
    if draw(st.booleans()):
        case = _ordered(case, draw(st.sampled_from(_STREAMS)), draw(st.sampled_from(_STREAMS)))
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


def _ordered(case: Case, stream: str, other: str) -> Case:
    """With one stream after another, if their functions allow it."""
    ordered = replace(case, after=((stream, other),))
    try:
        delay = ordered.workflow().delays[stream]
    except DefinitionError:
        return case
    functions = tuple(_later(spec, {stream: delay}) for spec in case.functions)
    return replace(ordered, functions=functions)


def _later(spec: Spec, delays: dict[str, int]) -> Spec:
    """With times that keep to the delays, but for those of one microsecond: they stay too small."""
    sends = tuple(
        replace(send, later=send.later + delays.get(send.stream, 0))
        if send.later is not None and send.later > 1
        else send
        for send in spec.sends
    )
    return replace(spec, sends=sends)
