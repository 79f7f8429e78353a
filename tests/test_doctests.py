"""The examples in docstrings hold."""

import doctest
import importlib
from pathlib import Path

import pytest

import millstream

ROOT = Path(millstream.__file__).parent
NAMES = sorted(
    ".".join(path.relative_to(ROOT.parent).with_suffix("").parts)
    for path in ROOT.rglob("*.py")
    if ">>> " in path.read_text()
)


def test_there_are_examples() -> None:
    """At least one module has some, so the next test tests something."""
    assert NAMES


@pytest.mark.parametrize("name", NAMES)
def test_the_examples_hold(name: str) -> None:
    """The examples in docstrings give the shown results."""
    results = doctest.testmod(importlib.import_module(name))
    assert results.attempted > 0
    assert results.failed == 0
