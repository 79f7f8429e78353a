"""Validates messages that come from outside. An invalid one is refused at once, with the reason.

A bad message that was accepted and failed later would do more harm: a window whose counts are not
numbers is never closed, and its panes are never deleted. So every field is checked here. The values
are checked as far as the job defines them: an algebra must be able to merge them, and bounds on a
number need a number. Values that only the user's own `combine` can judge are not checked. A window
on which it fails is closed nevertheless (see `answers`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import msgspec

from millstream.errors import FunctionError
from millstream.model.algebra import Algebra
from millstream.model.place import FAILURES, described
from millstream.windows.bounds.kinds import buckets_of, number_of, pair_of
from millstream.windows.members import Members, in_short
from millstream.windows.panes.message import Mark, Message, PaneManifest, Why
from millstream.windows.span import AXES, Span, difference

if TYPE_CHECKING:
    from millstream.windows.job import Job

T = TypeVar("T")
COUNT = "a whole number, 0 or more"
TIME = "a time in microseconds, or null"
BY_PANE = 'whole numbers of records by pane, as in {"7": 2}'
MUST_BE = {
    "pane": "the number of a pane",
    "until": "the number of a pane",
    "nodes": "an object",
    "partials": "an object",
    "over": "true or false, and true only if pane is until: it says that the logs end there",
    "mark": f"one of {', '.join(get_args(Mark))}",
    "why": f"one of {', '.join(get_args(Why))}, or null",
    **dict.fromkeys(("records", "bytes", "shed", "shed_bytes", "dead", "total"), COUNT),
    "misdated": f"{COUNT}, and no more than dead",
    "late": BY_PANE,
    "claimed": BY_PANE,
    "first": TIME,
    "last": TIME,
    "gap": "a number of bytes, or -1 if it is not known",
    "cut": "true or false",
}
"""The requirement on each field of a message and of a manifest, in words. Their types are in
`message`."""


def checked(name: str, job: Job, members: Members, sent: Any) -> Message:
    """Returns a message to the job of this name. Raises FunctionError if it is not valid."""
    where = f"job {name!r}"
    if isinstance(sent, dict) and "span" in sent:  # first: the other fields follow from it
        _check_span(where, job.span, sent["span"])
    message = _typed(f"{where}: a message", sent, Message)
    pane, until, partials = message.pane, message.until, message.partials
    if until < pane:
        raise FunctionError(
            f"{where}: a message must go from a pane to a later one, or to the same; "
            f"got {pane} and {until}"
        )
    if message.over and pane != until:
        raise FunctionError(
            f"{where}: over must be {MUST_BE['over']}; got True with pane {pane} and until {until}"
        )
    furthest = job.span.furthest
    if pane < -furthest or until > furthest:
        raise FunctionError(
            f"{where}: panes must be between {-furthest} and {furthest}; got {pane} to {until}"
        )
    if not message.nodes:
        raise FunctionError(f"{where}: a message must have at least one node; got none")
    unknown = sorted(message.nodes.keys() - members.known)
    if unknown:
        raise FunctionError(
            f"{where}: the nodes of a message must be the job's, {in_short(members.nodes)}; "
            f"got {in_short([repr(node) for node in unknown])}; add it to nodes="
        )
    for node, manifest in message.nodes.items():
        _check_manifest(f"{where}: the manifest of node {node!r}", manifest, furthest)
    if until != pane + 1 and (partials or any(map(_has_records, message.nodes.values()))):
        raise FunctionError(
            f"{where}: a message with records must have one pane; got {until - pane} panes"
        )
    if job.apart and partials and len(message.nodes) > 1:
        raise FunctionError(
            f"{where}: a message with values must have one node, since the "
            f"bounds are those of a sample; got {', '.join(message.nodes)}"
        )
    _check_partials(where, job, partials)
    return message


def _typed(where: str, sent: Any, kind: type[T]) -> T:
    """Converts a message or a manifest. Raises FunctionError with the field that is wrong."""
    try:
        return msgspec.convert(sent, kind)
    except msgspec.ValidationError as error:
        place = re.search(r"`\$\.(\w+)(\[\.\.\.\])?", str(error))
        if place is None:
            missing = re.search(r"required field `(\w+)`", str(error))
            must = f"have {missing[1]}" if missing else "be an object"
            raise FunctionError(f"{where} must {must}; got {sent!r:.200}") from None
        field, inside = place.groups()
        if field == "nodes" and inside:
            for node, manifest in sent["nodes"].items():
                _typed(f"{where}: the manifest of node {node!r}", manifest, PaneManifest)
        raise FunctionError(
            f"{where}: {field} must be {MUST_BE.get(field, 'text')}; got {sent[field]!r:.200}"
        ) from None


def _has_records(manifest: PaneManifest) -> bool:
    """True if the manifest has counts that belong to one pane. In a run of panes it would not be
    known which."""
    counts = manifest.records, manifest.bytes, manifest.shed, manifest.shed_bytes, manifest.dead
    return any(counts) or bool(manifest.late)


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


def _check_manifest(where: str, manifest: PaneManifest, furthest: int) -> None:
    if manifest.misdated > manifest.dead:
        raise FunctionError(
            f"{where}: misdated must be {MUST_BE['misdated']}, {manifest.dead}; "
            f"got {manifest.misdated}"
        )
    if manifest.records and manifest.mark != "data":
        raise FunctionError(
            f"{where}: mark must be data if there are records; got {manifest.mark}, "
            f"records={manifest.records}"
        )
    for pane in (*manifest.late, *manifest.claimed):
        if abs(int(pane)) > furthest:
            raise FunctionError(
                f"{where}: late and claimed must have {BY_PANE}, with panes between {-furthest} "
                f"and {furthest}; got {pane}"
            )


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
