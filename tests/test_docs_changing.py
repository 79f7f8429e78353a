"""The pages on changing an application: their examples run, and their answers have tests."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

from test_docs import ROOT, examples, here, paste, run_tests  # noqa: F401  # `here` is a fixture

from millstream.cli.commands.plan import planned
from millstream.driver.in_process import run
from millstream.modules import import_file
from millstream.settings.settings import Settings
from millstream.stores.reader import SlateReader


def test_the_shop_goes_on_in_cents(here: Path) -> None:  # noqa: F811
    """Version 2 reads the slates of version 1 as the page says, and its test passes."""
    blocks = examples("docs/changing-an-application.md")
    paste(here, blocks, "shop_v1.py", "shop_v2.py", "test_shop.py")
    (here / "in").mkdir()
    settings = Settings.of(
        "shop", here / "store", {"buys": f"json:{here / 'in'}"}, available_now=True
    )
    (here / "in" / "1.json").write_text(json.dumps({"user": "ann", "price": 2.5}) + "\n")
    run(import_file(here / "shop_v1.py").app, settings)
    second = import_file(here / "shop_v2.py").app
    assert planned(second.checked(), here / "store", None).losses() == []
    (here / "in" / "2.json").write_text(json.dumps({"user": "ann", "price": 1.0}) + "\n")
    run(second, settings)
    with SlateReader(here / "store") as reader:
        slate = reader.get("spent", "ann")
    assert slate is not None
    assert slate.value == {"visits": 2, "cents": 350, "shops": ["web"]}
    assert run_tests(import_file(here / "test_shop.py")) == 1


def test_every_answer_to_a_question_of_peers_has_its_test() -> None:
    """At least ten questions, each with a link to where it was asked and a test that is there."""
    page = (ROOT / "docs" / "questions-of-peers.md").read_text()
    questions = [part for part in page.split("\n\n") if part.startswith("**")]
    assert len(questions) >= 10
    for question in questions:
        assert "https://github.com/" in question, question[:80]
        named = re.findall(r"`(tests/\S+)::(\w+)`", question)
        assert named, question[:80]
        for file, test in named:
            tree = ast.parse((ROOT / file).read_text())
            names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
            assert test in names, (file, test)
