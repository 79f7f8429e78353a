"""A workflow drawn: as a tree of text for the terminal, as Mermaid, and (`graph_svg`) as SVG.

All three show the same: sources, functions in the order of their data, streams between them,
feedback edges apart, outputs.
"""

from __future__ import annotations

from collections.abc import Iterator

from millstream.model.duration import UNITS
from millstream.model.function import Function, Map, Update, location
from millstream.model.source import Source
from millstream.model.workflow import Workflow

WIDTH = 34
"""The column where the text's remarks begin, unless the tree needs more."""


def text(workflow: Workflow) -> str:
    """The workflow as a tree: streams and the functions that read them, each function once."""
    rows: list[tuple[str, str]] = []
    drawn: set[str] = set()
    for source in workflow.sources:
        rows.append((source.name, describe(source)))
        rows += _readers(workflow, source.name, None, "", drawn)
    for function in workflow.functions:  # what no source reaches
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
    for number, stream in enumerate(function.publishes):
        last = number == len(function.publishes) - 1
        branch, inner = ("└─ ", "   ") if last else ("├─ ", "│  ")
        yield f"{indent}{branch}{stream}", stream_remark(workflow, stream)
        yield from _readers(workflow, stream, function.name, indent + inner, drawn)


def describe(node: Source | Function) -> str:
    """A source or function in a few words."""
    if isinstance(node, Source):
        fields = [f"{what} {_named(of)}" for what, of in (("key", node.key), ("ts", node.ts)) if of]
        return ", ".join(["source", *fields])
    if isinstance(node, Map):
        return "map"
    words = ["update", f"slate {node.slate.__name__}"]
    if node.ttl is not None:
        words.append(f"ttl {span(node.ttl)}")
    if node.on_timer is not None:
        words.append("timers")
    return ", ".join(words)


def stream_remark(workflow: Workflow, stream: str) -> str:
    """What is to be said of a stream: that it is an output, delayed, or read by nobody."""
    words = []
    if stream in workflow.outputs:
        words.append("output")
    elif not workflow.subscribers(stream):
        words.append("read by nobody")
    if workflow.delay(stream):
        words.append(f"delay {span(workflow.delay(stream))}")
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


def _named(of: object) -> str:
    return of if isinstance(of, str) else f"{getattr(of, '__name__', 'function')}()"


def mermaid(workflow: Workflow) -> str:
    """The workflow as a Mermaid flowchart, for a README or a wiki."""
    functions = {f.name: f"f{number}" for number, f in enumerate(workflow.functions)}
    lines = ["flowchart LR"]
    for number, source in enumerate(workflow.sources):
        lines.append(f'    s{number}(["{_entity(source.name)}"])')
    for function in workflow.functions:
        left, right = ('[("', '")]') if isinstance(function, Update) else ('["', '"]')
        label = f"{_entity(function.name)}<br/>{_entity(describe(function))}"
        lines.append(f"    {functions[function.name]}{left}{label}{right}")
    for number, output in enumerate(workflow.outputs):
        lines.append(f'    o{number}(["{_entity(output)}"])')
    for number, source in enumerate(workflow.sources):
        for reader in workflow.subscribers(source.name):
            lines.append(f"    s{number} --> {functions[reader.name]}")
        if source.name in workflow.outputs:
            lines.append(f"    s{number} --> o{workflow.outputs.index(source.name)}")
    for function in workflow.functions:
        here = functions[function.name]
        for stream in function.publishes:
            label = f'"{_entity(stream)}"'
            for reader in workflow.subscribers(stream):
                back = (function.name, stream, reader.name) in workflow.feedback
                arrow = f"-. {label} .->" if back else f"-- {label} -->"
                lines.append(f"    {here} {arrow} {functions[reader.name]}")
            if stream in workflow.outputs:
                lines.append(f"    {here} --> o{workflow.outputs.index(stream)}")
    return "\n".join(lines) + "\n"


def _entity(text: str) -> str:
    """Text as Mermaid takes it inside quotes: its own entities are written #name;."""
    for plain, entity in (("#", "#35;"), ('"', "#quot;"), ("<", "#lt;"), (">", "#gt;")):
        text = text.replace(plain, entity)
    return text


def svg(workflow: Workflow) -> str:
    """The workflow as one SVG image."""
    from millstream.graph_svg import draw  # it draws with this module's words

    return draw(workflow)
