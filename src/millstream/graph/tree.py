"""A workflow as a tree of text, for the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from millstream.graph.words import describe, stream_remark
from millstream.model.function import Function
from millstream.model.place import location
from millstream.model.workflow import Workflow

WIDTH = 34
"""The column where the remarks begin, unless the tree needs more room."""


def text(workflow: Workflow) -> str:
    """Returns the workflow as a tree of streams and the functions that read them, each function
    once."""
    rows: list[tuple[str, str]] = []
    drawn: set[str] = set()
    for source in workflow.sources:
        rows.append((source.name, describe(source)))
        rows += _readers(workflow, source.name, None, "", drawn)
    for function in workflow.functions:  # functions that no source reaches
        if function.name not in drawn:
            rows += _function(workflow, function, "", "", drawn)
    width = max([WIDTH, *(len(tree) + 2 for tree, _ in rows)])
    lines = [f"{tree:{width}}{remark}".rstrip() for tree, remark in rows]
    title = f"{workflow.name}: {workflow.order} order"
    return "\n".join([title, "", *lines]) + "\n"


def _readers(
    workflow: Workflow, stream: str, emitter: str | None, indent: str, drawn: set[str]
) -> Iterator[tuple[str, str]]:
    readers = workflow.subscribers(stream)
    for number, reader in enumerate(readers):
        last = number == len(readers) - 1
        branch, inner = ("└─ ", "   ") if last else ("├─ ", "│  ")
        if (emitter, stream, reader.name) in workflow.feedback:
            yield f"{indent}{branch}{reader.name}", "feedback: joins the next batch"
        elif reader.name in drawn:
            yield f"{indent}{branch}{reader.name}", "as above"
        else:
            yield from _function(workflow, reader, indent + branch, indent + inner, drawn)


def _function(
    workflow: Workflow, function: Function, head: str, indent: str, drawn: set[str]
) -> Iterator[tuple[str, str]]:
    drawn.add(function.name)
    yield f"{head}[{function.name}]", describe(function) + location(function.function)
    changes = (change.name for change in workflow.changes if change.update == function.name)
    streams = (*function.emits, *changes)
    for number, stream in enumerate(streams):
        last = number == len(streams) - 1
        branch, inner = ("└─ ", "   ") if last else ("├─ ", "│  ")
        yield f"{indent}{branch}{stream}", stream_remark(workflow, stream)
        yield from _readers(workflow, stream, function.name, indent + inner, drawn)
