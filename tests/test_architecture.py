"""The shape of the source: dependencies point one way, modules are short, importing is light."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import millstream

ROOT = Path(millstream.__file__).parent
MODULES = sorted(ROOT.rglob("*.py"))

KNOWS = {
    "errors": "",
    "nearest": "",
    "nesting": "",
    "durable": "errors",
    "model": "errors nearest",
    "codec": "errors model",
    "reference": "errors model codec",
    "algebra": "errors model codec",
    "reference_final": "model codec reference",
    "testing": "errors nearest model codec reference reference_final",
    "elements": "errors nearest model codec algebra",
    "windows": "errors nearest model codec algebra",
    "feeds": "errors nearest model codec",
    "stores": "errors nearest durable model codec",
    "sources": "errors nearest nesting durable model",
    "sinks": "errors durable codec log",
    "engine": "errors durable model codec stores",
    "trees": "errors nearest",
    "agent": "errors nearest durable model codec windows packages trees",
    "packages": "errors model modules config app_file windows",
    "toml": "errors nearest model",
    "modules": "errors nearest model",
    "setting_values": "errors model nearest sources actions",
    "settings": "errors model nearest setting_values sources",
    "app_sections": "errors algebra elements model nearest modules toml",
    "app_parts": "errors elements windows feeds model nearest app_sections toml",
    "app_file": "errors model nearest modules setting_values toml actions app_parts app_sections",
    "config": "errors model nearest modules app_file",
    "graph": "model",
    "verifying": "errors durable codec stores engine log description actions",
    "log": "errors durable",
    "actions": "errors nearest durable model stores log",
    "description": "errors durable model graph",
    "server": "errors nearest nesting durable model codec stores log description actions windows "
    "feeds trees",
    "client": "errors codec",
    "driver": "errors durable model codec stores engine sources sinks settings log actions",
    "spark": "errors nearest durable model stores engine sources sinks settings log driver",
    "cli": "errors nearest durable model codec stores sources sinks modules setting_values "
    "settings config graph driver spark log description server client actions engine verifying "
    "agent windows feeds packages trees",
    "": "errors model testing client algebra elements windows feeds spark",
}
"""What each part of the package may know; "" is `import millstream` itself."""

LATER = {("model", "cli"), ("spark", "cli")}
"""Known only when it is called for: `App.run` starts the command line's run, `into` its server."""

OUTSIDE = {
    "click": {"cli"},
    "cryptography": {"packages"},
    "rich": {"cli"},
    "lmdb": {"stores"},
    "httpx": {"client", "actions"},
    "datasketches": {"algebra"},
    "numpy": {"algebra", "sources"},
    "msgspec": {
        *("codec", "stores", "engine", "sources", "sinks", "driver", "spark", "cli"),
        *("log", "description", "server", "client", "actions", "verifying", "agent", "feeds"),
        *("windows", "packages", "trees"),
    },
    "prometheus_client": {"server"},
    "pyarrow": {"engine", "sources", "sinks", "spark"},
    "py4j": {"spark"},
    "pyspark": {"spark"},
    "starlette": {"server"},
    "uvicorn": {"server"},
}
"""Who may import which library; any other is not a dependency."""


def part_of(module: str) -> str:
    """The part of the package that a dotted name is in."""
    return module.split(".")[1] if "." in module else ""


def name_of(path: Path) -> str:
    """The dotted name of a file."""
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def imports(path: Path) -> Iterator[tuple[str, bool]]:
    """What a file imports, and whether only inside a function."""
    tree = ast.parse(path.read_text())
    inside = {
        id(node)
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef)
        for node in ast.walk(function)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, id(node) in inside
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are written out in full"
            for alias in node.names if node.module == "millstream" else ():
                yield f"millstream.{alias.name}", id(node) in inside
            if node.module != "millstream":
                yield str(node.module), id(node) in inside


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_knows_only_what_its_part_may(path: Path) -> None:
    """Each part knows the parts below it and its own libraries, and nothing else."""
    part = part_of(name_of(path))
    assert part in KNOWS, f"say in KNOWS what {part!r} may know"
    for name, later in imports(path):
        top = name.split(".")[0]
        if top == "millstream":
            other = "" if name == "millstream.__version__" else part_of(name)
            allowed = {part, *KNOWS[part].split()} | ({""} if part == "cli" else set())
            assert other in allowed or (later and (part, other) in LATER), (
                f"{path.name} imports {name}, and {part or 'millstream'} may not know it"
            )
        elif top not in sys.stdlib_module_names:
            assert part in OUTSIDE.get(top, set()), f"{path.name} imports {top}"


def test_dependencies_point_one_way() -> None:
    """What the parts may know has no cycle, but for what is known later."""
    graph = {
        part: {other for other in known.split() if (part, other) not in LATER}
        for part, known in KNOWS.items()
    }
    tuple(TopologicalSorter(graph).static_order())
    parts = {part_of(name_of(path)) for path in MODULES}
    assert parts == set(KNOWS), "a part that is gone has no place here"


def test_the_reference_shares_only_the_model_and_the_codec() -> None:
    """What defines the meaning has nothing in common with the engine that must have it."""
    paths = (ROOT / "reference.py", ROOT / "reference_final.py")
    known = {part_of(name) for path in paths for name, _ in imports(path) if "millstream" in name}
    assert known == {"errors", "model", "codec", "reference"}
    assert "engine" not in KNOWS["testing"]


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_is_read_in_one_go(path: Path) -> None:
    """No module has over 400 lines, and each says what it is."""
    lines = len(path.read_text().splitlines())
    assert lines <= 400, f"{path.name} has {lines} lines: look for the second concept"
    assert ast.get_docstring(ast.parse(path.read_text()))


def test_what_is_beside_the_source_is_short_too() -> None:
    """No module of the tests, the benchmarks, the fault runs and the examples has over 400 lines,
    and no two tests have one name: pytest could not tell them apart."""
    project = Path(__file__).parents[1]
    folders = ("tests", "bench", "fault_runs", "examples", "docs", "scripts")
    modules = [path for folder in folders for path in sorted((project / folder).rglob("*.py"))]
    long = {str(path.relative_to(project)): len(path.read_text().splitlines()) for path in modules}
    assert {name: lines for name, lines in long.items() if lines > 400} == {}
    tests = [path.name for path in modules if path.name.startswith("test_")]
    assert sorted(tests) == sorted(set(tests))


def test_the_public_names() -> None:
    """There are few, in order, and all are there."""
    names = millstream.__all__
    assert 12 <= len(names) <= 22
    assert names == sorted(names)
    assert all(hasattr(millstream, name) for name in names)


HEAVY = (
    *("datasketches", "httpx", "lmdb", "numpy"),
    *("pandas", "pyarrow", "pyspark", "rich", "starlette"),
)


@pytest.mark.parametrize(
    ("module", "light"), [("millstream", ("click", *HEAVY)), ("millstream.cli.main", HEAVY)]
)
def test_importing_loads_little(module: str, light: tuple[str, ...]) -> None:
    """`import millstream` loads no library but msgspec, and the command line no heavy one."""
    code = f"import {module}, sys; print([n for n in {light!r} if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
