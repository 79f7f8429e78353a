"""Validates messages that come from outside. An invalid one is refused at once, with the reason.

A bad message that got through and failed later would do more harm: a window whose counts are not
numbers is never closed, and none of its panes is ever deleted. So every field is checked here. The
values are checked as far as the job defines them: an algebra must be able to merge them, and bounds
on a number need a number. Values that only the user's own `combine` can judge are left to it. A
window on which it fails is closed all the same (see `answers`).
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
HELD = ("records", "bytes", "shed", "shed_bytes", "dead", "late")
"""Counts that only a message of one pane may have: in a run it would not be known which pane they
belong to."""
COUNTS = ("records", "bytes", "shed", "shed_bytes", "dead", "total")
MARKS, WHYS = get_args(Mark), (None, *get_args(Why))


def check(name: str, job: Job, members: Members, message: Any) -> None:
    """Raises FunctionError if a message to the job of this name is not valid."""
    where = f"job {name!r}"
    if not isinstance(message, dict) or not {*message}.issuperset(FIELDS):
        raise FunctionError(
            f"{where}: a message must have pane, until, nodes, partials and span; "
            f"got {message!r:.200}"
        )
    _check_span(where, job.span, message["span"])
    pane, until, manifests = message["pane"], message["until"], message["nodes"]
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
    furthest = job.span.furthest
    if pane < -furthest or until > furthest:
        raise FunctionError(
            f"{where}: panes must be between {-furthest} and {furthest}; got {pane} to {until}"
        )
    for part in ("nodes", "partials"):
        if not isinstance(message[part], dict):
            raise FunctionError(f"{where}: {part} must be an object; got {message[part]!r:.200}")
    if not manifests:
        raise FunctionError(f"{where}: a message must have at least one node; got none")
    unknown = sorted(manifests.keys() - members.known)
    if unknown:
        raise FunctionError(
            f"{where}: the nodes of a message must be the job's, {in_short(members.nodes)}; "
            f"got {in_short([repr(node) for node in unknown])}; add it to nodes="
        )
    for node, manifest in manifests.items():
        _check_manifest(f"{where}: the manifest of node {node!r}", manifest, furthest)
    partials = message["partials"]
    records = any(manifest[count] for manifest in manifests.values() for count in HELD)
    if until != pane + 1 and (partials or records):
        raise FunctionError(
            f"{where}: a message with records must have one pane; got {until - pane} panes"
        )
    if job.apart and partials and len(manifests) > 1:
        raise FunctionError(
            f"{where}: a message with values must have one node, since the "
            f"bounds are those of a sample; got {', '.join(manifests)}"
        )
    _check_partials(where, job, partials)


def _check_span(where: str, span: Span, text: Any) -> None:
    """Raises FunctionError if the panes belong to a job with other windows: the numbers may be the
    same, but the times are not."""
    if text == span.text:
        return
    axis, *sizes = text.split("/") if isinstance(text, str) else [""]
    if axis not in AXES or len(sizes) != 3 or not all(map(str.isdecimal, sizes)):
        raise FunctionError(f"{where}: span must be as in {span.text!r}; got {text!r:.200}")
    theirs, here = difference(text, span.text)
    raise FunctionError(
        f"{where}: the agent's job has {theirs}, the root's {here}: start the agent with the "
        "application's file"
    )


def _check_manifest(where: str, manifest: Any, furthest: int) -> None:
    if not isinstance(manifest, dict):
        raise FunctionError(f"{where} must be an object; got {manifest!r:.200}")
    missing = sorted({"mark", "why", "late", "first", "last", *COUNTS} - {*manifest})
    if missing:
        raise FunctionError(f"{where} must have {', '.join(missing)}; got {manifest!r:.200}")
    for name, choices in (("mark", MARKS), ("why", WHYS)):
        if not isinstance(manifest[name], str | None) or manifest[name] not in choices:
            allowed = ", ".join(filter(None, choices))
            raise FunctionError(
                f"{where}: {name} must be one of {allowed}; got {manifest[name]!r:.200}"
            )
    for name in COUNTS:
        if type(manifest[name]) is not int or manifest[name] < 0:
            raise FunctionError(
                f"{where}: {name} must be a whole number, 0 or more; got {manifest[name]!r:.200}"
            )
    misdated = manifest.get("misdated", 0)
    if type(misdated) is not int or not 0 <= misdated <= manifest["dead"]:
        raise FunctionError(
            f"{where}: misdated must be a whole number, and no more than dead, {manifest['dead']}; "
            f"got {misdated!r:.200}"
        )
    if not isinstance(manifest.get("cut", False), bool):
        raise FunctionError(f"{where}: cut must be true or false; got {manifest['cut']!r:.200}")
    gap = manifest.get("gap", 0)
    if type(gap) is not int or gap < -1:
        raise FunctionError(
            f"{where}: gap must be a number of bytes, or -1 if it is not known; got {gap!r:.200}"
        )
    for name in ("first", "last"):
        if manifest[name] is not None and type(manifest[name]) is not int:
            raise FunctionError(
                f"{where}: {name} must be a time in microseconds, or null; "
                f"got {manifest[name]!r:.200}"
            )
    if manifest["records"] and manifest["mark"] != "data":
        raise FunctionError(
            f"{where}: mark must be data if there are records; got {manifest['mark']}, "
            f"records={manifest['records']}"
        )
    for name in ("late", "claimed"):
        by_pane = manifest.get(name, {})
        if not isinstance(by_pane, dict) or not all(
            _is_pane(pane, furthest) and type(count) is int and count >= 0
            for pane, count in by_pane.items()
        ):
            raise FunctionError(
                f"{where}: {name} must have whole numbers of records by pane, as in "
                f'{{"7": 2}}; got {by_pane!r:.200}'
            )


def _is_pane(text: str, furthest: int) -> bool:
    return text.removeprefix("-").isdecimal() and len(text) < 21 and abs(int(text)) <= furthest


def _check_partials(where: str, job: Job, partials: Mapping[str, Any]) -> None:
    """Raises FunctionError if a value does not have the form that the job's algebra, or the kind of
    its bounds, requires."""
    algebra, kind = isinstance(job.combine, Algebra), job.kind
    if not algebra and kind is None:
        return
    for key, partial in partials.items():
        try:
            if kind in ("count", "sum"):
                _number(number_of(job, partial))
            elif kind in ("mean", "ratio"):
                for number in pair_of(job, partial):
                    _number(number)
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
        raise TypeError(f"{value!r:.200} is not a number")
