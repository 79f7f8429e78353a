"""Messages count one thing as one: no "1 events" anywhere that a user reads."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import millstream
from millstream.driver.startup.change_plan import _count
from millstream.driver.startup.slate_consequences import _read
from millstream.verifying.findings import Findings

ROOT = Path(millstream.__file__).parent
NOUNS = "events letters slates records files rows tries shards objects batches functions nodes "
NOUNS += "lines keys panes tasks posts consumers producers"
PLURAL = re.compile(rf"^(?: (?:dead|late|dead late))? ({'|'.join(NOUNS.split())})\b")
ALWAYS_MANY = {
    # A bound, a constant or a rate, or a sentence that is only said of several.
    "a package: must have at most",
    "events a second",
    "events/s",
    "{count} records",
    "{panes} panes are not sent",
    "{until - pane} panes",
    "{read} records came late",
    # Not a number.
    "{record['format']} files until now",
    "{' or '.join(formats)} files",
}


def plurals_after_numbers(path: Path) -> Iterator[str]:
    """Texts such as f"{count} slates", whatever the count is."""
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.JoinedStr):
            continue
        for before, after in zip(node.values, node.values[1:], strict=False):
            if isinstance(before, ast.FormattedValue) and isinstance(after, ast.Constant):
                number = ast.unparse(before.value)
                bound = number.isupper() or number.lstrip("_").isupper() or "most" in number
                if PLURAL.match(str(after.value)) and not bound:
                    yield f"{path.relative_to(ROOT)}:{node.lineno}: {{{number}}}{after.value}"


PARTS = sorted(path.name for path in ROOT.iterdir() if path.is_dir() or path.suffix == ".py")


@pytest.mark.parametrize("part", [part for part in PARTS if not part.startswith("__")])
def test_no_message_says_one_events(part: str) -> None:
    """A number with a noun in the plural comes from `counted`, or is said of several only."""
    paths = (ROOT / part).rglob("*.py") if (ROOT / part).is_dir() else [ROOT / part]
    found = [text for path in paths for text in plurals_after_numbers(path)]
    assert [text for text in found if not any(known in text for known in ALWAYS_MANY)] == []


def test_the_plan_counts_one_slate_as_one() -> None:
    """Nouns and verbs go with their number."""
    assert _count({"a": 1}, "a", " stays", " stay") == "1 slate stays"
    assert _count({"a": 1200}, "a", " stays", " stay") == "1,200 slates stay"
    assert _read(1) == "1 slate that was read"
    assert _read(2) == "2 slates that were read"


def test_a_check_of_a_store_counts_one_commit_as_one() -> None:
    """The summary of `millstream verify` has the singular too."""
    findings = Findings()
    findings.looked.update({"commits": 1, "changes objects": 1, "rows in bases": 1, "files": 2})
    text = "looked at 1 commit, 1 changes object, 1 row in bases, 2 files: all is well"
    assert findings.summary() == text
