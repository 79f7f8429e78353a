"""The size of classes and functions is limited, so that each can be explained in a sentence."""

from __future__ import annotations

import ast

from test_architecture import MODULES, name_of, tree_of

LARGE_CLASSES = {"Settings": 53, "JobPanes": 34, "Status": 32, "WindowAccount": 30}
"""Classes with over 25 fields, and how many they may have: fewer, never more."""
COMPLEX = {
    "millstream.engine.intake._plain": 30,
    "millstream.windows.bounds.strata.layout": 29,
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
    **dict.fromkeys(
        (
            "millstream.graph.folded_parts.fold",
            "millstream.settings.settings.resolve",
            "millstream.sources.arrow_rows._converter_of_value",
            "millstream.windows.board.scoreboard.move",
        ),
        24,
    ),
    **dict.fromkeys(
        (
            "millstream.agent.tree.membership._greet",
            "millstream.settings.setting_values.check_address",
            "millstream.windows.panes.pane_ledger.__call__",
            "millstream.windows.placement.place",
            "millstream.windows.root.window_root._take",
        ),
        21,
    ),
}
"""Functions of a cyclomatic complexity over 20, and how complex they may be: less, never more."""
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def test_a_class_has_few_fields() -> None:
    """At most 25, declared or set by `__init__`; a larger one has parts."""
    classes = [node for path in MODULES for node in ast.walk(tree_of(path))]
    counts = {node.name: fields_of(node) for node in classes if isinstance(node, ast.ClassDef)}
    large = {name: n for name, n in counts.items() if n > LARGE_CLASSES.get(name, 25)}
    assert not large, "look for its parts"


def fields_of(node: ast.ClassDef) -> int:
    """The number of fields of a class."""
    declared = {ast.unparse(part.target) for part in node.body if isinstance(part, ast.AnnAssign)}
    for method in node.body:
        if isinstance(method, FUNCTIONS) and method.name == "__init__":
            stored = (part for part in ast.walk(method) if isinstance(part, ast.Attribute))
            declared |= {
                part.attr
                for part in stored
                if isinstance(part.ctx, ast.Store) and ast.unparse(part.value) == "self"
            }
    return len(declared)


def test_a_function_has_few_branches() -> None:
    """A cyclomatic complexity of at most 20; a more complex one becomes several."""
    counts = {}
    for path in MODULES:
        for node in ast.walk(tree_of(path)):
            if isinstance(node, FUNCTIONS):
                name = f"{name_of(path)}.{node.name}"
                counts[name] = max(complexity(node), counts.get(name, 0))
    wrong = {name: count for name, count in counts.items() if count > COMPLEX.get(name, 20)}
    assert not wrong, "each part of it could be explained in a sentence"


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
