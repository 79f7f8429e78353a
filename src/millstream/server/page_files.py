"""The live page and its parts: a few files next to this module, read once and sent as they are.

GET /              the page
GET /page/{file}   its style, scripts and icon; a name is looked up among them, never on disk
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from millstream.nearest import did_you_mean
from millstream.server.http.answers import Refusal
from millstream.server.http.paths import Route, segment

FOLDER = Path(__file__).parent / "page"
FIRST = "index.html"
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


def read_files() -> dict[str, tuple[bytes, str]]:
    """Reads every file of the page; returns its content and type by its name."""
    return {
        file.name: (file.read_bytes(), TYPES[file.suffix])
        for file in sorted(FOLDER.iterdir())
        if file.suffix in TYPES
    }


def routes() -> list[Route]:
    files = read_files()

    async def page(request: Request) -> Response:
        return _answer(files, FIRST)

    async def part(request: Request) -> Response:
        return _answer(files, segment(request, "file"))

    return [Route("GET", ("",), page), Route("GET", ("page", "{file}"), part)]


def _answer(files: Mapping[str, tuple[bytes, str]], name: str) -> Response:
    if name not in files:
        hint = did_you_mean(name, files)
        raise Refusal(404, f"the page has no file {name[:100]!r}; {hint}")
    content, kind = files[name]
    return Response(content, headers={"Content-Type": kind})
