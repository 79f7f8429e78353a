"""The files of the page: their types, and the contents that are not allowed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from served import MadeStore, asked

from millstream.server.page_files import FOLDER, read_files

TEXTS = {file.name: file.read_text() for file in sorted(FOLDER.iterdir())}
SCRIPTS = [name for name in TEXTS if name.endswith(".js")]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A client of a server of an empty store."""
    made = MadeStore(tmp_path_factory.mktemp("files") / "store", {"count": "dict"})
    with asked(made.path) as client:
        yield client


def test_each_file_has_its_type(client: httpx.Client) -> None:
    """The page is at /, and its parts are under /page. Each has its type and the policy."""
    types = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
    assert set(read_files()) == set(TEXTS), "every file of the folder is known"
    front = client.get("/")
    assert (front.status_code, front.headers["content-type"]) == (200, "text/html; charset=utf-8")
    for name, text in TEXTS.items():
        answer = client.get(f"/page/{name}")
        assert (answer.status_code, answer.text) == (200, text)
        kind = types.get(Path(name).suffix, "text/html")
        assert answer.headers["content-type"].partition(";")[0] == kind
        assert "script-src 'self'; style-src 'self'" in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "name", ["nothing.js", "..%2Fpage_files.py", "%2Fetc%2Fpasswd", "page.css%00", ".", "main.JS"]
)
def test_other_names_are_refused(client: httpx.Client, name: str) -> None:
    """Only the page's own files are found: a name is never a path."""
    answer = client.get(f"/page/{name}")
    assert (answer.status_code, answer.json()["status"]) == (404, 404)


def test_nothing_comes_from_outside() -> None:
    """No file names another host, and every file that the page and its scripts name exists."""
    for name, text in TEXTS.items():
        hosts = set(re.findall(r"(?:https?:)?//[\w.-]+\.\w+", text)) - {"http://www.w3.org"}
        assert not hosts, f"{name} names {hosts}"
    named = re.findall(r'(?:src|href)="page/([^"]+)"', TEXTS["index.html"])
    named += [one for name in SCRIPTS for one in re.findall(r'from "\./([^"]+)"', TEXTS[name])]
    assert {"main.js", "page.css", "icon.svg", "dom.js"} <= set(named) <= set(TEXTS)


def test_no_text_becomes_markup() -> None:
    """No script parses text as HTML or runs it, and the page has no script or style inline."""
    for name in SCRIPTS:
        found = re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|eval\(|Function\(",
            TEXTS[name],
        )
        assert found is None, f"{name}: {found}"
    assert not re.search(r"<style|style=|\son\w+=|<script(?![^>]*\ssrc=)", TEXTS["index.html"])
