"""Finds the route of a request by its raw path.

A path is split at its slashes *before* percent-decoding: a slash in a key comes as %2F and stays
part of the key. The words of a pattern are compared with raw segments, so a decoded segment is only
ever a name to look up, and cannot lead to another route. No segment is used as a file's path.
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
from millstream.server.access.grants import Need, Right
from millstream.server.http.answers import Refusal

Endpoint: TypeAlias = Callable[[Request], Awaitable[Response]]

_BAD_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")


@dataclass(frozen=True, slots=True)
class Route:
    """A method and a path, like ("slates", "{update}"): words, and places for any segment.

    The endpoint gets the decoded segments with `segment`. The path / is ("",).
    GET routes answer HEAD too.
    """

    method: str
    pattern: tuple[str, ...]
    endpoint: Endpoint
    right: Right | None = None
    """The right that a token needs; None: `read` for GET, `all` for other methods."""
    heavy: bool = False
    """True if answers are often large: few of them are built at once."""

    @property
    def path(self) -> str:
        return "/" + "/".join(self.pattern)

    def need(self, places: dict[str, str]) -> Need:
        """Returns the need of a request to this route with these decoded segments."""
        right = self.right or ("read" if self.method == "GET" else "all")
        if "update" in places:
            return Need(right, "update", places["update"])
        if self.pattern[0] == "streams" and "name" in places:
            return Need(right, "stream", places["name"])
        return Need(right)


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
            candidates.sort(key=lambda candidate: [word is None for word in candidate.words])

    def find(self, method: str, raw_path: bytes) -> tuple[Route, dict[str, str]]:
        """Returns the route and the decoded segments; raises Refusal if there is no route."""
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
                route = candidate.routes.get(method)
                if route is not None:
                    return route, {name: decoded(segments[n]) for n, name in candidate.places}
                # Go on: a later pattern may take this word as a name, and have the method.
                allowed.update(candidate.routes)
        if allowed:
            names = ", ".join(sorted(allowed))
            raise Refusal(
                405, f"this path does not take {method}, only {names}", headers={"Allow": names}
            )
        raise Refusal(404, "there is no such path; GET /openapi.json lists them all")


class _Candidate:
    def __init__(self, route: Route) -> None:
        self.pattern = route.pattern
        self.words = [None if word.startswith("{") else word.encode() for word in route.pattern]
        self.places = [(n, w[1:-1]) for n, w in enumerate(route.pattern) if w.startswith("{")]
        self.routes: dict[str, Route] = {}
        self.add(route)

    def add(self, route: Route) -> None:
        self.routes[route.method] = route
        if route.method == "GET":
            self.routes["HEAD"] = route


def segment(request: Request, place: str) -> str:
    """Returns the decoded segment of a request's path at a place of its route's pattern."""
    text: str = request.path_params[place]
    return text


def decoded(segment: bytes) -> str:
    """Decodes a raw segment; raises Refusal if it is not percent-encoded UTF-8.

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
    """Returns the query's parameters, each with its only value.

    Raises Refusal for a parameter that is not known or comes twice, and for invalid UTF-8.
    """
    parameters: dict[str, str] = {}
    for name, values in query_lists(request, known, 20).items():
        if len(values) > 1:
            raise Refusal(400, f"parameter {name!r} must come once")
        parameters[name] = values[0]
    return parameters


def query_lists(request: Request, known: tuple[str, ...], most: int) -> dict[str, list[str]]:
    """Returns the query's parameters, at most `most` values, each with all of its values."""
    text: bytes = request.scope["query_string"]
    if not text:
        return {}
    try:
        pairs = parse_qsl(
            text.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=most
        )
    except ValueError:  # includes UnicodeDecodeError
        raise Refusal(400, "the query must be percent-encoded UTF-8, with few parameters") from None
    parameters: dict[str, list[str]] = {}
    for name, value in pairs:
        if name not in known:
            raise Refusal(400, f"there is no parameter {name[:40]!r}; {did_you_mean(name, known)}")
        parameters.setdefault(name, []).append(value)
    return parameters


def whole_number(parameters: dict[str, str], name: str, default: int, least: int, most: int) -> int:
    """Returns a parameter that is a whole number within bounds; raises Refusal otherwise."""
    text = parameters.get(name)
    if text is None:
        return default
    if text.isascii() and text.isdigit() and len(text) < 20 and least <= int(text) <= most:
        return int(text)
    raise Refusal(
        400, f"parameter {name!r} must be a whole number from {least} to {most}; got {text[:40]!r}"
    )
