"""A message comes from outside: what could not be taken in is refused at once, with what is wrong.

Whatever passed and failed later would take more with it than itself: a window whose counts are no
numbers is never closed, and with it none of its panes goes. So every field is looked at here, and
of the values as much as the job says of them: what an algebra cannot merge, or what is no number
though the bounds are those of one. A value that only the user's own `combine` can judge is left to
it: a window that it fails on is closed all the same (see `answers`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from millstream.errors import FunctionError
from millstream.model.algebra import Algebra
from millstream.model.place import described
from millstream.model.rules import FAILURES
from millstream.windows.job import Job
from millstream.windows.kinds import buckets_of, number_of, pair_of
from millstream.windows.members import Members, in_short
from millstream.windows.message import Mark, Why
from millstream.windows.span import AXES, Span, difference

FIELDS = {"pane", "until", "nodes", "partials", "span"}
FURTHEST = 1 << 60
"""On the axis, either side of zero: 36,000 years of time. Farther off no timer could be set."""
HELD = ("records", "bytes", "shed", "shed_bytes", "dead", "late")
"""What only a message of one pane may count: of a run it would not be known which pane it is in."""
COUNTS = ("records", "bytes", "shed", "shed_bytes", "dead", "total")
MARKS, WHYS = get_args(Mark), (None, *get_args(Why))


def check(name: str, job: Job, members: Members, message: Any) -> None:
    """FunctionError, if a message to the job of this name is not one that can be taken in."""
    where = f"job {name!r}"
    if not isinstance(message, dict) or not {*message}.issuperset(FIELDS):
        raise FunctionError(
            f"{where}: a message must have pane, until, nodes, partials and span; "
            f"got {message!r:.200}"
        )
    _check_span(where, job.span, message["span"])
    pane, until, told = message["pane"], message["until"], message["nodes"]
    if type(pane) is not int or type(until) is not int or until < pane:
        raise FunctionError(
            f"{where}: a message must go from a pane to a later one, or to the same; "
            f"got {pane!r} and {until!r}"
        )
    over = message.get("over", False)
    if type(over) is not bool or (over and pane != until):
        raise FunctionError(
            f"{where}: over must be true or false, and true only if pane is until: it says that "
            f"the logs end there; got {over!r:.200} with pane {pane} and until {until}"
        )
    furthest = FURTHEST // job.span.pane
    if pane < -furthest or until > furthest:
        raise FunctionError(
            f"{where}: panes must be between {-furthest} and {furthest}; got {pane} to {until}"
        )
    for what in ("nodes", "partials"):
        if not isinstance(message[what], dict):
            raise FunctionError(f"{where}: {what} must be an object; got {message[what]!r:.200}")
    if not told:
        raise FunctionError(f"{where}: a message must be of a node or more; got none")
    unknown = sorted(told.keys() - members.known)
    if unknown:
        raise FunctionError(
            f"{where}: the nodes of a message must be the job's, {in_short(members.nodes)}; "
            f"got {in_short([repr(node) for node in unknown])}; add it to nodes="
        )
    for node, manifest in told.items():
        _check_manifest(f"{where}: the manifest of node {node!r}", manifest, furthest)
    partials = message["partials"]
    records = any(one[of] for one in told.values() for of in HELD)
    if until != pane + 1 and (partials or records):
        raise FunctionError(
            f"{where}: a message with records must be of one pane; got one of {until - pane}"
        )
    if job.apart and partials and len(told) > 1:
        raise FunctionError(
            f"{where}: a message with values must be of one node, since the "
            f"bounds are those of a sample; got one of {', '.join(told)}"
        )
    _check_partials(where, job, partials)


def _check_span(where: str, span: Span, told: Any) -> None:
    """FunctionError, if the panes are those of a job with other windows: of the same numbers, but
    of other times."""
    if told == span.text:
        return
    axis, *sizes = told.split("/") if isinstance(told, str) else [""]
    if axis not in AXES or len(sizes) != 3 or not all(map(str.isdecimal, sizes)):
        raise FunctionError(f"{where}: span must be as in {span.text!r}; got {told!r:.200}")
    theirs, here = difference(told, span.text)
    raise FunctionError(
        f"{where}: the agent's job has {theirs}, the root's {here}: start the agent with the "
        "application's file"
    )


def _check_manifest(where: str, told: Any, furthest: int) -> None:
    if not isinstance(told, dict):
        raise FunctionError(f"{where} must be an object; got {told!r:.200}")
    missing = sorted({"mark", "why", "late", "first", "last", *COUNTS} - {*told})
    if missing:
        raise FunctionError(f"{where} must have {', '.join(missing)}; got {told!r:.200}")
    for one, choices in (("mark", MARKS), ("why", WHYS)):
        if not isinstance(told[one], str | None) or told[one] not in choices:
            said = ", ".join(filter(None, choices))
            raise FunctionError(f"{where}: {one} must be one of {said}; got {told[one]!r:.200}")
    for one in COUNTS:
        if type(told[one]) is not int or told[one] < 0:
            raise FunctionError(
                f"{where}: {one} must be a whole number, 0 or more; got {told[one]!r:.200}"
            )
    misdated = told.get("misdated", 0)
    if type(misdated) is not int or not 0 <= misdated <= told["dead"]:
        raise FunctionError(
            f"{where}: misdated must be a whole number, and no more than dead, {told['dead']}; "
            f"got {misdated!r:.200}"
        )
    gap = told.get("gap", 0)
    if type(gap) is not int or gap < -1:
        raise FunctionError(
            f"{where}: gap must be a number of bytes, or -1 if nobody knows it; got {gap!r:.200}"
        )
    for one in ("first", "last"):
        if told[one] is not None and type(told[one]) is not int:
            raise FunctionError(
                f"{where}: {one} must be a time in microseconds, or null; got {told[one]!r:.200}"
            )
    if told["records"] and told["mark"] != "data":
        raise FunctionError(
            f"{where}: mark must be data if there are records; got {told['mark']}, "
            f"records={told['records']}"
        )
    for one in ("late", "claimed"):
        by_pane = told.get(one, {})
        if not isinstance(by_pane, dict) or not all(
            _is_pane(pane, furthest) and type(count) is int and count >= 0
            for pane, count in by_pane.items()
        ):
            raise FunctionError(
                f"{where}: {one} must have whole numbers of records by pane, as in "
                f'{{"7": 2}}; got {by_pane!r:.200}'
            )


def _is_pane(text: str, furthest: int) -> bool:
    return text.removeprefix("-").isdecimal() and len(text) < 21 and abs(int(text)) <= furthest


def _check_partials(where: str, job: Job, partials: Mapping[str, Any]) -> None:
    """FunctionError, if a value is not what the job's algebra, or the kind of its bounds, makes."""
    algebra, kind = isinstance(job.combine, Algebra), job.kind
    if not algebra and kind is None:
        return
    for key, partial in partials.items():
        try:
            if kind in ("count", "sum"):
                _number(number_of(job, partial))
            elif kind in ("mean", "ratio"):
                for one in pair_of(job, partial):
                    _number(one)
            elif kind == "histogram":
                buckets_of(job, {("", 0): partial})
            else:
                job.merging.write(job.merging.read(partial))
        except FunctionError as error:
            raise FunctionError(f"{where}: key {key!r}: {error}") from None
        except FAILURES as error:
            raise FunctionError(
                f"{where}: the value of key {key!r} must be what its combine makes; "
                f"got {partial!r:.200}: {described(error)}"
            ) from None


def _number(value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{value!r:.200} is no number")
