"""Describes sources, functions and streams in a few words, the same in every drawing."""

from __future__ import annotations

from millstream.model.duration import UNITS
from millstream.model.function import Function, Map
from millstream.model.size import shown_size
from millstream.model.source import Source
from millstream.model.workflow import Workflow


def describe(node: Source | Function) -> str:
    """Describes a source or function in a few words."""
    if isinstance(node, Source):
        fields = [
            f"{field} {_named(value)}"
            for field, value in (("key", node.key), ("ts", node.ts))
            if value
        ]
        return ", ".join(["source", *fields])
    if isinstance(node, Map):
        return ", ".join(["map", *(f"looks up {lookup.name}" for lookup in node.lookups)])
    if node.algebra is not None:
        words = ["aggregate", node.algebra.words]
    else:
        words = ["update", f"slate {node.slate.__name__}"]
    if node.batch:
        words.append("batch across keys" if node.across_keys else "batch")
    if node.ttl is not None:
        words.append(f"ttl {span(node.ttl)}")
    if node.on_timer is not None:
        words.append("timers")
    if node.limit is not None:
        words.append(f"limit {node.limit} {node.overload}")
    if node.keep is not None:
        words.append(f"keep {node.keep}")
    if node.memory is not None:
        words.append(f"memory {shown_size(node.memory)}")
    return ", ".join(words)


def stream_remark(workflow: Workflow, stream: str) -> str:
    """Returns remarks on a stream: output or action, nobody reads it, its delay and its order."""
    words = []
    if any(stream == changes.name for changes in workflow.changes):
        words.append("changes of slates")
    if stream in workflow.outputs:
        words.append("action" if stream in workflow.actions else "output")
    elif not workflow.subscribers(stream):
        words.append("read by nobody")
    if workflow.delay(stream):
        words.append(f"delay {span(workflow.delay(stream))}")
    words += [f"after {s.after}" for s in workflow.declared if s.name == stream and s.after]
    return ", ".join(words)


def span(microseconds: int) -> str:
    """A duration in the largest units that fit.

    >>> span(90 * 86_400_000_000), span(5_400_000_000), span(0)
    ('90d', '1h30m', '0s')
    """
    parts, rest = [], microseconds
    for unit in ("d", "h", "m", "s", "ms", "us"):
        count, rest = divmod(rest, UNITS[unit])
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


def _named(named: object) -> str:
    return named if isinstance(named, str) else f"{getattr(named, '__name__', 'function')}()"
