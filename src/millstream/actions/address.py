"""The address of an action's events: `webhook:URL`, `line:FILE` or `stderr`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from millstream.errors import DefinitionError
from millstream.nearest import nearest

Kind = Literal["webhook", "line", "stderr"]
KINDS: tuple[Kind, ...] = ("webhook", "line", "stderr")
FORMS = "webhook:URL, line:FILE or stderr"


@dataclass(frozen=True, slots=True)
class ActionAddress:
    """A kind, and the URL or file as the user gave it (empty for stderr)."""

    kind: Kind
    target: str

    @property
    def shown(self) -> str:
        """The address without secrets: only the host of a URL."""
        if self.kind == "webhook":
            url = urlsplit(self.target)
            port = "" if url.port is None else f":{url.port}"
            host = f"[{url.hostname}]" if ":" in str(url.hostname) else url.hostname
            return f"webhook:{url.scheme}://{host}{port}"
        return self.kind if self.kind == "stderr" else f"{self.kind}:{self.target}"


def parse_action_address(text: object, where: str) -> ActionAddress:
    """Parses an address. `where` begins the error message if it is not valid.

    >>> parse_action_address("webhook:http://127.0.0.1:9000/hook?key=s3cret", "here").shown
    'webhook:http://127.0.0.1:9000'
    """
    if not isinstance(text, str):
        raise DefinitionError(f"{where} must be {FORMS}; got {text!r}")
    name, _, target = text.partition(":")
    kind = next((known for known in KINDS if known == name.strip().lower()), None)
    if kind is None:
        near = nearest(name.strip(), KINDS)
        if name in ("http", "https"):
            hint = f"; write webhook:{text}"
        else:
            hint = "" if near is None else f"; did you mean {near}?"
        raise DefinitionError(f"{where}: an action's address must be {FORMS}; got {text!r}{hint}")
    if kind == "stderr":
        if target:
            raise DefinitionError(f"{where}: stderr takes no target; got {text!r}")
    elif not target:
        raise DefinitionError(f"{where}: {text!r} names nothing; an address is {FORMS}")
    elif kind == "webhook":
        _check_url(target, where)
    return ActionAddress(kind, target)


def _check_url(url: str, where: str) -> None:
    try:
        parts = urlsplit(url)
        is_valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_valid = False
    if not is_valid or not url.isprintable() or " " in url:
        raise DefinitionError(
            f"{where}: a webhook's address must be webhook:http://HOST/PATH or "
            f"webhook:https://HOST/PATH; got {url!r}"
        )


def addresses_of(
    app: str, actions: Iterable[str], given: Mapping[str, str]
) -> dict[str, ActionAddress]:
    """Returns each action's address. Raises DefinitionError if one has none, or if two write to one
    file."""
    addresses: dict[str, ActionAddress] = {}
    files: dict[str, str] = {}
    for name in actions:
        if name not in given:
            raise DefinitionError(
                f"action {name!r} of app {app!r} has no address, which says where it is carried "
                f"out. Give it one with --action {name}=webhook:URL (or line:FILE, or stderr), in "
                f"the TOML file, or with app.action({name!r}, to=...)"
            )
        addresses[name] = address = parse_action_address(given[name], f"action {name!r}")
        if address.kind == "line":
            other = files.setdefault(os.path.realpath(address.target), name)
            if other != name:
                raise DefinitionError(
                    f"actions {other!r} and {name!r} must not write to one file, "
                    f"{address.target}: each reads the end of its file to find what it has written "
                    "there; name another"
                )
    return addresses
