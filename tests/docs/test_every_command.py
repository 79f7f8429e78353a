"""No command of these pages is left out: each is run by a test beside this one, or named here."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from page_shell import ROOT, commands_of

from docs.page_links import anchor

PAGES = ("tour", "agents", "operations")
ELSEWHERE = {
    "cd retail": "tests/docs/test_tour_commands.py",
    "python -m millstream.spark.class_archive": "scripts/setup",
    "millstream run app.py --sink alerts=kafka:alerts?servers=broker-1:9092,broker-2:9092": (
        "tests/services/test_kafka_sink_runs.py"
    ),
}
"""Commands that are not run as they stand, and where they are tested, with Java or with a
broker."""


@pytest.mark.parametrize("page", PAGES)
def test_every_command_is_run(page: str) -> None:
    """A command that is added to a page, or changed, needs a test that runs it."""
    tree = ast.parse((Path(__file__).parent / f"test_{page}_commands.py").read_text())
    texts = {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    commands = commands_of(f"docs/{page}.md")
    assert len(commands) > 10
    assert [one for one in commands if one not in texts and one not in ELSEWHERE] == []
    for place in ELSEWHERE.values():
        assert (ROOT / place).exists()


@pytest.mark.parametrize("page", ["tour", "operations"])
def test_the_contents_have_every_section(page: str) -> None:
    """In order, and none is omitted."""
    text = (ROOT / "docs" / f"{page}.md").read_text()
    unfenced = re.sub(r"^```.*?^```$", "", text, flags=re.S | re.M)
    sections = re.findall(r"^## (.*)$", unfenced, re.M)
    contents = re.findall(r"^- \[(.*)\]\(#(.*)\)$", text.partition("\n## ")[0], re.M)
    assert contents == [(name, anchor(name)) for name in sections]
