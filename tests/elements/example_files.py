"""The example files of the elements, run over their own data on the reference."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import millstream as ms
from millstream.app_file.app_file import read_app

ROOT = Path(__file__).resolve().parent.parent.parent
_BLOCK = re.compile(r"^```toml\n(.*?)^```$", re.S | re.M)


def run_example(name: str) -> ms.testing.Run:
    """Runs `millstream run examples/elements/NAME.toml` as the file says, and returns the
    result."""
    app, given = read_app(ROOT / "examples" / "elements" / f"{name}.toml")
    records = {source: _records(address) for source, address in given["sources"].items()}
    return ms.testing.run(app, records, final=is_final(name))


def is_final(name: str) -> bool:
    """True if an example is to be run with `--final`."""
    return "--final" in (ROOT / "examples" / "elements" / f"{name}.toml").read_text()


def _records(address: str) -> list[Any]:
    folder = Path(address.partition(":")[2])
    files = sorted(folder.iterdir())
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def told(page: str) -> list[Any]:
    """The output that a page of docs/elements shows: its JSON lines, in their order."""
    text = (ROOT / "docs" / "elements" / page).read_text(encoding="utf-8")
    blocks = re.findall(r"^```json\n(.*?)^```$", text, re.S | re.M)
    return [json.loads(line) for block in blocks for line in block.splitlines()]


def check_page(page: str, name: str) -> None:
    """The page shows the tables of the example file as they are."""
    text = (ROOT / "docs" / "elements" / page).read_text(encoding="utf-8")
    file = (ROOT / "examples" / "elements" / f"{name}.toml").read_text(encoding="utf-8")
    assert any(block in file for block in _BLOCK.findall(text)), f"{page}: not {name}.toml"
