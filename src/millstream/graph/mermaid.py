"""A workflow as a Mermaid flowchart."""

from __future__ import annotations

from millstream.graph.words import describe
from millstream.model.function import Update
from millstream.model.workflow import Workflow


def mermaid(workflow: Workflow) -> str:
    """Returns the workflow as a Mermaid flowchart, for a README or a wiki."""
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
        node = functions[function.name]
        for stream in function.emits:
            label = f'"{_entity(stream)}"'
            for reader in workflow.subscribers(stream):
                is_feedback = (function.name, stream, reader.name) in workflow.feedback
                arrow = f"-. {label} .->" if is_feedback else f"-- {label} -->"
                lines.append(f"    {node} {arrow} {functions[reader.name]}")
            if stream in workflow.outputs:
                lines.append(f"    {node} --> o{workflow.outputs.index(stream)}")
    for changes in workflow.changes:
        output = f"o{workflow.outputs.index(changes.name)}"
        lines.append(f"    {functions[changes.update]} --> {output}")
    return "\n".join(lines) + "\n"


def _entity(text: str) -> str:
    """Escapes text for Mermaid quotes. Its entities are written as #name;."""
    for plain, entity in (("#", "#35;"), ('"', "#quot;"), ("<", "#lt;"), (">", "#gt;")):
        text = text.replace(plain, entity)
    return text
