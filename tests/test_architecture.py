"""The shape of the source: dependencies point one way, modules are short, importing is light."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Container, Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import millstream

ROOT = Path(millstream.__file__).parent
MODULES = sorted(ROOT.rglob("*.py"))

KNOWS = {
    "errors": "",
    "version": "",
    "column_types": "",
    "nearest": "",
    "counted_nouns": "",
    "json_checks": "",
    "columnar": "",
    "retry_pause": "",
    "wall_clock": "",
    "extras": "errors",
    "child_process": "",
    "durable": "errors",
    "model": "errors nearest",
    "codec": "errors model",
    "slate_versions": "errors model codec",
    "update_tables": "errors model codec columnar",
    "update_calls": "errors extras model update_tables",
    "reference": "errors model codec slate_versions update_calls",
    "algebra": "errors model codec",
    "reference_final": "model codec reference",
    "reference_changes": "model reference slate_changes",
    "testing": "errors nearest model codec slate_versions reference reference_changes "
    "reference_final",
    "elements": "errors nearest model codec algebra",
    "windows": "errors counted_nouns nearest model codec algebra trees messages",
    "feeds": "errors nearest model codec messages",
    "places": "errors extras durable retry_pause",
    "kafka": "errors counted_nouns extras nearest",
    "stores": "errors counted_nouns nearest child_process durable model codec places column_types "
    "wall_clock",
    "sources": "errors counted_nouns nearest json_checks columnar durable model places kafka",
    "databases": "errors nearest model",
    "lookups": "errors model databases retry_pause",
    "slate_changes": "codec",
    "sinks": "errors durable codec log databases slate_changes kafka column_types",
    "engine": "letters errors durable json_checks model codec slate_versions stores slate_changes "
    "update_calls update_tables columnar",
    "trees": "errors nearest",
    "agent": "errors counted_nouns nearest retry_pause durable model codec windows packages trees "
    "messages wall_clock",
    "packages": "errors extras model modules config app_file windows",
    "toml": "errors nearest model",
    "modules": "errors nearest model",
    "settings": "errors model nearest places sources actions databases kafka",
    "app_file": "errors model nearest modules settings toml actions algebra elements windows feeds",
    "config": "errors model nearest modules app_file",
    "graph": "counted_nouns model",
    "verifying": "errors counted_nouns durable codec places stores engine log description "
    "actions letters sources sinks",
    "messages": "",
    "log": "errors counted_nouns durable places wall_clock",
    "letters": "errors model log messages nearest",
    "backups": "errors durable places sources stores log actions wall_clock",
    "actions": "errors counted_nouns nearest retry_pause durable model places stores log "
    "wall_clock",
    "description": "errors durable model graph",
    "server": "errors version counted_nouns nearest json_checks child_process durable model codec "
    "places stores log description actions windows feeds trees letters kafka messages wall_clock",
    "client": "errors counted_nouns retry_pause codec messages",
    "driver": "errors counted_nouns retry_pause columnar durable model codec slate_versions places "
    "stores engine sources sinks "
    "settings log letters actions databases slate_changes kafka column_types wall_clock",
    "notices": "",
    "service": "errors counted_nouns model places stores log description sources actions windows "
    "settings config packages driver server notices",
    "spark": "errors nearest durable model stores engine sources sinks settings log driver "
    "column_types service notices",
    "cli": "errors version counted_nouns extras nearest durable model codec stores sources sinks "
    "modules settings config graph driver spark log description server client actions engine "
    "verifying agent windows feeds packages trees places letters backups column_types service "
    "notices messages wall_clock",
    "application": "errors counted_nouns extras model graph client driver cli",
    "": "errors version model testing client algebra elements windows feeds spark lookups stores "
    "application",
}
"""The parts that each part of the package may import; "" is `import millstream` itself."""

OUTSIDE = {
    "cassandra": {"databases", "sinks"},
    "click": {"cli"},
    "confluent_kafka": {"kafka"},
    "cryptography": {"packages"},
    "rich": {"cli"},
    "lmdb": {"stores"},
    "obstore": {"places"},
    "httpx": {"client", "actions"},
    "datasketches": {"algebra"},
    "numpy": {"algebra", "columnar", "engine", "sources"},
    "msgspec": {
        "messages",
        *("codec", "stores", "engine", "sources", "sinks", "driver", "spark", "cli"),
        *("log", "description", "server", "client", "actions", "verifying", "agent", "feeds"),
        *("windows", "packages", "trees", "slate_changes", "kafka", "lookups", "letters"),
        *("backups", "child_process", "column_types", "service", "update_tables"),
    },
    "prometheus_client": {"server"},
    "psycopg": {"databases", "sinks"},
    "pyarrow": {"columnar", "engine", "sources", "sinks", "spark", "update_tables"},
    "py4j": {"spark"},
    "pyspark": {"spark"},
    "starlette": {"server"},
    "uvicorn": {"server"},
}
"""The parts that may import each library. Any other library is not a dependency."""


def part_of(module: str) -> str:
    """The part of the package that a dotted name is in."""
    return module.split(".")[1] if "." in module else ""


def name_of(path: Path) -> str:
    """The dotted name of a file."""
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def imports(path: Path) -> Iterator[str]:
    """Yields the modules that a file imports, inside functions too."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are written out in full"
            for alias in node.names if node.module == "millstream" else ():
                yield f"millstream.{alias.name}"
            if node.module != "millstream":
                yield str(node.module)


def test_a_module_knows_only_what_its_part_may() -> None:
    """Each part knows the parts below it and its own libraries, and nothing else."""
    wrong = [fault for path in MODULES for fault in forbidden_imports(path)]
    assert not wrong, "\n".join(wrong)


def forbidden_imports(path: Path) -> Iterator[str]:
    """A sentence for each import of a module that its part may not have."""
    part = part_of(name_of(path))
    if part not in KNOWS:
        yield f"{name_of(path)}: say in KNOWS what {part!r} may know"
        return
    for name in imports(path):
        top = name.split(".")[0]
        if top == "millstream":
            other = part_of(name)
            allowed = {part, *KNOWS[part].split()}
            if other not in allowed:
                yield f"{name_of(path)} imports {name}: {part or 'millstream'} may not know it"
        elif top not in sys.stdlib_module_names and part not in OUTSIDE.get(top, set()):
            yield f"{name_of(path)} imports {top}"


def test_dependencies_point_one_way() -> None:
    """The allowed dependencies form no cycle, not by an import inside a function either."""
    graph = {part: set(known.split()) for part, known in KNOWS.items()}
    tuple(TopologicalSorter(graph).static_order())
    parts = {part_of(name_of(path)) for path in MODULES}
    assert parts == set(KNOWS), (
        "KNOWS at the top of this file has each part of the package, and no other; they differ in "
        f"{parts ^ set(KNOWS)}"
    )


def test_modules_import_each_other_one_way() -> None:
    """Modules form no cycle either: not within a part, not with the modules at the root, and not by
    an import inside a function. `millstream` itself counts with the names that it loads lazily."""
    paths = {name_of(path): path for path in MODULES}
    graph = {name: {*loaded(path, paths)} & {*paths} for name, path in paths.items()}
    assert "millstream.application" in graph["millstream"]
    tuple(TopologicalSorter(graph).static_order())


def loaded(path: Path, known: Container[str]) -> Iterator[str]:
    """Yields the modules that a file imports when it runs, without those that only annotations
    need. For the package itself it includes the names that it loads lazily."""
    typing = {
        id(inner)
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree_of(path)):
        if id(node) in typing and path != ROOT / "__init__.py":
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                module = f"{node.module}.{alias.name}"
                yield module if module in known else node.module


def test_the_reference_shares_only_the_model_and_the_codec() -> None:
    """The reference defines the meaning, so it shares nothing with the engine except how slates are
    coded, how older ones are read, and how a function is called."""
    paths = (ROOT / "reference.py", ROOT / "reference_final.py")
    known = {part_of(name) for path in paths for name in imports(path) if "millstream" in name}
    assert known == {"errors", "model", "codec", "slate_versions", "update_calls", "reference"}
    assert "engine" not in KNOWS["testing"]


def test_a_module_is_read_in_one_go() -> None:
    """No module has over 400 lines, and each has a docstring."""
    lines = {name_of(path): len(path.read_text().splitlines()) for path in MODULES}
    long = {name: count for name, count in lines.items() if count > 400}
    assert not long, (
        f"these modules have over 400 lines: {long}; look for the second concept in each, and give "
        "it a module of its own"
    )
    silent = [name_of(path) for path in MODULES if not ast.get_docstring(tree_of(path))]
    assert not silent, "a module begins with a docstring that says what it is"


NOUNS_IN_ING = {"testing", "resharding", "shared_resharding", "verifying"}
"""Words that may end like gerunds: those of the field, and the package of `millstream verify`."""


def test_a_module_is_named_by_a_noun() -> None:
    """A newcomer looks for things, not for what is being done: `pane_maker`, not `making`."""
    names = {name for path in MODULES for name in name_of(path).split(".")}
    gerunds = {name for name in names if name.endswith("ing")}
    assert gerunds <= NOUNS_IN_ING, (
        f"name a module by a noun that a newcomer would search for; got {gerunds - NOUNS_IN_ING}"
    )


VAGUE = {"one", "found", "told", "of", "what"}
"""Names that do not say what they hold."""
KEPT_NAMES = {
    "millstream.algebra": {"of"},
    "millstream.elements": {"of"},
    "millstream.elements.standard.sort": {"told"},
    "millstream.agent.panes.restart": {"told"},
}
"""By package or module: names that users write (`sum(of="price")`), and stored fields."""


def test_a_variable_says_what_it_holds() -> None:
    """No variable, parameter or field of the package and of the examples has a vague name."""
    examples = (ROOT.parents[1] / "examples").rglob("*.py")
    wrong = [
        f"{path.relative_to(ROOT.parents[1])}:{line}: {name}"
        for path in (*MODULES, *examples)
        for line, name in named_in(tree_of(path))
        if name in VAGUE - kept_names(path)
    ]
    assert not wrong, "\n".join(["name these by what they hold, as in pane, row, sources:", *wrong])


def kept_names(path: Path) -> set[str]:
    """The vague names that a module may have."""
    if not path.is_relative_to(ROOT):
        return set()
    module = f"{name_of(path)}."
    return {
        name
        for part, names in KEPT_NAMES.items()
        for name in names
        if module.startswith(f"{part}.")
    }


def named_in(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The variables, parameters and attributes that a module sets, with their lines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.MatchAs | ast.MatchStar) and node.name:
            yield node.lineno, node.name


LISTED_BY_NAME = {ROOT, ROOT / "cli" / "commands", ROOT / "elements" / "standard"}
"""Folders whose modules need no list: CONTRIBUTING has those of the package itself, a command's
module has its name, and so has a standard element's."""


def test_a_folder_says_what_is_in_it() -> None:
    """The docstring of a folder, or of the one above it, names each of its modules."""
    unnamed = [
        name_of(path)
        for path in MODULES
        if path.parent not in LISTED_BY_NAME
        and not path.stem.startswith("__")
        and path.stem not in contents_of(path.parent)
    ]
    assert not unnamed, (
        f"say in the __init__.py of its folder, or of the folder above, what each of these is: "
        f"{', '.join(unnamed)}"
    )


def contents_of(folder: Path) -> set[str]:
    """The words of a folder's docstring, and of that of the folder above."""
    folders = (folder, folder.parent) if folder.parent != ROOT else (folder,)
    docstrings = [ast.get_docstring(tree_of(path / "__init__.py")) or "" for path in folders]
    return set(re.findall(r"\w+", " ".join(docstrings)))


MOST_MODULES = 25


def test_a_large_folder_shows_its_parts() -> None:
    """A folder has at most 25 modules; the parts of a larger one are folders."""
    counts: dict[str, int] = {}
    for path in MODULES:
        if path.stem != "__init__":
            folder = path.parent.relative_to(ROOT).as_posix().removeprefix(".")
            counts[folder] = counts.get(folder, 0) + 1
    large = {folder: count for folder, count in counts.items() if count > MOST_MODULES}
    assert not large, (
        f"these folders have over {MOST_MODULES} modules: {large}; move those that belong together "
        "into a folder of their own, as elements/standard/, with an __init__.py that says what it "
        "is; `git mv` and an import of the new path are all that it takes"
    )


def test_a_class_name_is_used_once() -> None:
    """No two classes share a name, so that a name alone says what is meant. An underscore does not
    make two names of one."""
    homes: dict[str, list[str]] = {}
    for path in MODULES:
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name.strip("_"), []).append(name_of(path))
    shared = {name: modules for name, modules in homes.items() if len(modules) > 1}
    assert not shared, f"rename one of the classes that share a name: {shared}"


def test_what_is_beside_the_source_is_short_too() -> None:
    """No module of the tests, the benchmarks, the fault runs and the examples has over 400 lines,
    and no two tests have one name: pytest could not tell them apart."""
    project = Path(__file__).parents[1]
    folders = ("tests", "bench", "fault_runs", "examples", "docs", "scripts")
    modules = [path for folder in folders for path in sorted((project / folder).rglob("*.py"))]
    long = {str(path.relative_to(project)): len(path.read_text().splitlines()) for path in modules}
    long = {name: lines for name, lines in long.items() if lines > 400}
    assert not long, (
        f"these have over 400 lines: {long}; put the new tests, or another topic of the file, into "
        "a file of their own beside it"
    )
    tests = Counter(path.name for path in modules if path.name.startswith("test_"))
    shared = [name for name, count in tests.items() if count > 1]
    assert not shared, f"rename one of the test files that share a name: {shared}"


def test_the_public_names() -> None:
    """The public names are few, sorted, and all exist."""
    names = millstream.__all__
    assert 12 <= len(names) <= 32
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
