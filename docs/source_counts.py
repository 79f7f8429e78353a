"""Counts what the note on names and types counts, in the syntax trees of `src`.

.venv/bin/python -m docs.source_counts [ROOT]
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

PARTS = ("windows", "feeds", "agent", "server", "engine")


def main(root: Path) -> None:
    package = root / "src" / "millstream"
    paths = sorted(package.rglob("*.py"))
    trees = {path: ast.parse(path.read_text()) for path in paths}
    print(f"modules: {len(paths)}")
    print(f"lines: {sum(len(path.read_text().splitlines()) for path in paths):,}")
    for part in PARTS:
        inside = [tree for path, tree in trees.items() if path.is_relative_to(package / part)]
        print(f"string subscripts in {part}: {sum(map(string_subscripts, inside))}")
    names = Counter(node.name for tree in trees.values() for node in classes(tree))
    repeated = sorted(name for name, count in names.items() if count > 1)
    print(f"class names used more than once: {len(repeated)} ({', '.join(repeated)})")
    sizes = {node.name: fields_of(node) for tree in trees.values() for node in classes(tree)}
    large = sorted(sizes.items(), key=lambda size: -size[1])[:6]
    print("most fields: " + ", ".join(f"{name} {count}" for name, count in large))


def string_subscripts(tree: ast.Module) -> int:
    """The number of subscripts that are a constant text, without those of types and of tables that
    are constants, as in `UNITS["s"]`."""
    return sum(
        isinstance(node, ast.Subscript)
        and isinstance(node.slice, ast.Constant)
        and isinstance(node.slice.value, str)
        and ast.unparse(node.value) != "Literal"
        and not ast.unparse(node.value).isupper()
        for node in ast.walk(tree)
    )


def classes(tree: ast.Module) -> Iterator[ast.ClassDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))


def fields_of(node: ast.ClassDef) -> int:
    """The number of fields of a class: declared, or set by `__init__`."""
    fields = {ast.unparse(part.target) for part in node.body if isinstance(part, ast.AnnAssign)}
    for method in node.body:
        if isinstance(method, ast.FunctionDef) and method.name == "__init__":
            fields |= {
                part.attr
                for part in ast.walk(method)
                if isinstance(part, ast.Attribute)
                and isinstance(part.ctx, ast.Store)
                and ast.unparse(part.value) == "self"
            }
    return len(fields)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else Path(__file__).parents[1])
