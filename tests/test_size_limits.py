"""The size of classes and functions is limited, so that each can be explained in a sentence."""

from __future__ import annotations

import ast
from collections import Counter

from test_architecture import MODULES, name_of, part_of, tree_of

from docs.source_counts import fields_of, string_subscripts

LARGE_CLASSES = {"Status": 32}
"""Classes with over 25 fields of their own, and how many they may have: fewer, never more."""
COMPLEX = {
    "millstream.engine.intake._plain": 29,
    "millstream.windows.bounds.strata.layout": 23,
    "millstream.driver.startup.slate_consequences.slate_consequences": 27,
    **dict.fromkeys(
        (
            "millstream.agent.panes.pane_reader._take_alone",
            "millstream.column_types.column_type",
            "millstream.driver.cycle.told",
            "millstream.reference._apply",
            "millstream.server.access.guard._check",
        ),
        25,
    ),
    "millstream.graph.folded_parts.fold": 23,
    "millstream.settings.settings.resolve": 23,
    "millstream.sources.arrow_rows._converter_of_value": 24,
    "millstream.windows.board.scoreboard.move": 22,
    **dict.fromkeys(
        (
            "millstream.settings.setting_values.check_address",
            "millstream.windows.panes.pane_ledger.__call__",
            "millstream.windows.placement.place",
            "millstream.windows.root.window_root._take",
        ),
        21,
    ),
}
"""Functions of a cyclomatic complexity over 20, and how complex they may be: less, never more."""
SUBSCRIPTS = {"windows": 22, "server": 50, "agent": 5, "engine": 2, "feeds": 0, "messages": 0}
"""Subscripts that are a constant text, by part, and how many there may be: fewer, never more. Those
left are entries of tables, ASGI scopes and paths, and messages and files that are not checked
yet."""
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def test_a_class_has_few_fields() -> None:
    """At most 25, declared or set by `__init__`; a larger one has parts."""
    classes = [node for path in MODULES for node in ast.walk(tree_of(path))]
    counts = {node.name: fields_of(node) for node in classes if isinstance(node, ast.ClassDef)}
    large = {name: n for name, n in counts.items() if n > LARGE_CLASSES.get(name, 25)}
    assert not large, (
        f"these classes have more fields than they may: {large}; put fields that belong together "
        "into a class of their own"
    )


def test_what_travels_is_typed() -> None:
    """What travels is a Struct, and is not read by text in brackets."""
    counts: dict[str, Counter[str]] = {part: Counter() for part in SUBSCRIPTS}
    for path in MODULES:
        part = part_of(name_of(path))
        if part in counts:
            counts[part][name_of(path)] += string_subscripts(tree_of(path))
    more = {
        part: {name: count for name, count in modules.items() if count}
        for part, modules in counts.items()
        if modules.total() > SUBSCRIPTS[part]
    }
    assert not more, (
        'these parts have more subscripts like told["kind"] than they may: declare a '
        "msgspec.Struct and read its fields; a route gets what is in its path with `segment`. By "
        f"module: {more}"
    )


def test_a_function_has_few_branches() -> None:
    """A cyclomatic complexity of at most 20; a more complex one becomes several."""
    counts = {}
    for path in MODULES:
        for node in ast.walk(tree_of(path)):
            if isinstance(node, FUNCTIONS):
                name = f"{name_of(path)}.{node.name}"
                counts[name] = max(complexity(node), counts.get(name, 0))
    wrong = {name: count for name, count in counts.items() if count > COMPLEX.get(name, 20)}
    assert not wrong, (
        f"these functions have more branches than they may: {wrong}; move what can be explained in "
        "a sentence, such as one check, into a function of its own"
    )


def complexity(function: ast.AST) -> int:
    """The number of independent paths through a function, without functions inside it."""
    count, left = 1, list(ast.iter_child_nodes(function))
    branches = (ast.If, ast.IfExp, ast.For, ast.AsyncFor, ast.While)
    while left:
        node = left.pop()
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            continue
        left.extend(ast.iter_child_nodes(node))
        if isinstance(node, (*branches, ast.ExceptHandler, ast.match_case)):
            count += 1
        elif isinstance(node, ast.comprehension):
            count += 1 + len(node.ifs)
        elif isinstance(node, ast.BoolOp):
            count += len(node.values) - 1
    return count
