"""Which route a request takes, decided on the raw path.

A path is split at its slashes *before* percent-decoding: a key's own slash comes as %2F and stays
part of the key. Words of a pattern are compared with the raw segment, so a decoded segment is only
ever a name to look up, never a way to another route. No segment is a file's path.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias
from urllib.parse import parse_qsl, unquote_to_bytes

from starlette.requests import Request
from starlette.responses import Response

from millstream.nearest import did_you_mean
from millstream.server.answers import Refusal

Endpoint: TypeAlias = Callable[[Request], Awaitable[Response]]

_BAD_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")


@dataclass(frozen=True, slots=True)
class Route:
    """A method and a path, as ("slates", "{update}"): a word, or a place for any segment.

    The endpoint finds the decoded segments in `request.path_params`. The path / is ("",).
    GET routes answer HEAD too.
    """

    method: str
    pattern: tuple[str, ...]
    endpoint: Endpoint

    @property
    def path(self) -> str:
        return "/" + "/".join(self.pattern)


class Routes:
    """All routes, found by the number of segments and the words among them."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self.all = tuple(routes)
        self._by_shape: dict[tuple[int, bytes], list[_Candidate]] = {}
        for route in self.all:
            shape = len(route.pattern), route.pattern[0].encode()
            candidates = self._by_shape.setdefault(shape, [])
            for candidate in candidates:
                if candidate.pattern == route.pattern:
                    candidate.add(route)
                    break
            else:
                candidates.append(_Candidate(route))
            # Words come before places: /slates/{update}/dump is not the slate of a key "dump".
            candidates.sort(key=lambda one: [word is None for word in one.words])

    def find(self, method: str, raw_path: bytes) -> tuple[Endpoint, dict[str, str]]:
        """The endpoint and the decoded segments; Refusal if there is none for this."""
        segments = raw_path.split(b"/")[1:]
        allowed: set[str] = set()
        for candidate in self._by_shape.get((len(segments), segments[0] if segments else b""), ()):
            for word, segment in zip(candidate.words, segments, strict=True):
                if word is None:
                    if not segment:
                        break
                elif word != segment:
                    break
            else:
                endpoint = candidate.endpoints.get(method)
                if endpoint is not None:
                    return endpoint, {name: decoded(segments[n]) for n, name in candidate.places}
                # A word that another pattern takes as a name must not hide that pattern's methods.
                allowed.update(candidate.endpoints)
        if allowed:
            names = ", ".join(sorted(allowed))
            raise Refusal(
                405, f"{method} is not for this path; it takes {names}", headers={"Allow": names}
            )
        raise Refusal(404, "there is no such path; GET /openapi.json lists them all")


class _Candidate:
    def __init__(self, route: Route) -> None:
        self.pattern = route.pattern
        self.words = [None if word.startswith("{") else word.encode() for word in route.pattern]
        self.places = [(n, w[1:-1]) for n, w in enumerate(route.pattern) if w.startswith("{")]
        self.endpoints: dict[str, Endpoint] = {}
        self.add(route)

    def add(self, route: Route) -> None:
        self.endpoints[route.method] = route.endpoint
        if route.method == "GET":
            self.endpoints["HEAD"] = route.endpoint


def decoded(segment: bytes) -> str:
    """The text of a raw segment; Refusal if it is not percent-encoded UTF-8.

    >>> decoded(b"a%2Fb%20c")
    'a/b c'
    """
    try:
        if b"%" not in segment:
            return segment.decode("ascii")
        if _BAD_ESCAPE.search(segment) is None:
            return unquote_to_bytes(segment).decode()
    except UnicodeDecodeError:
        pass
    raise Refusal(400, "a path's segments must be percent-encoded UTF-8, and one of these is not")


def query(request: Request, known: tuple[str, ...]) -> dict[str, str]:
    """The query's parameters, each at most once; Refusal for others and for what is not UTF-8."""
    found: dict[str, str] = {}
    for name, values in query_lists(request, known, 20).items():
        if len(values) > 1:
            raise Refusal(400, f"parameter {name!r} must come once")
        found[name] = values[0]
    return found


def query_lists(request: Request, known: tuple[str, ...], most: int) -> dict[str, list[str]]:
    """The query's parameters, at most so many, each with all of its values."""
    text: bytes = request.scope["query_string"]
    if not text:
        return {}
    try:
        pairs = parse_qsl(
            text.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=most
        )
    except ValueError:  # UnicodeDecodeError is one
        raise Refusal(400, "the query must be percent-encoded UTF-8, with few parameters") from None
    found: dict[str, list[str]] = {}
    for name, value in pairs:
        if name not in known:
            raise Refusal(400, f"there is no parameter {name[:40]!r}; {did_you_mean(name, known)}")
        found.setdefault(name, []).append(value)
    return found


def whole_number(found: dict[str, str], name: str, default: int, least: int, most: int) -> int:
    """A parameter that is a whole number within bounds; Refusal for anything else."""
    text = found.get(name)
    if text is None:
        return default
    if text.isascii() and text.isdigit() and len(text) < 20 and least <= int(text) <= most:
        return int(text)
    raise Refusal(
        400, f"parameter {name!r} must be a whole number from {least} to {most}; got {text[:40]!r}"
    )
