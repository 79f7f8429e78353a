"""Groups of options that several commands have, and options that are repeated pairs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from millstream.errors import CommandError

Command = TypeVar("Command", bound=Callable[..., Any])


def option_group(*options: Callable[[Any], Any]) -> Callable[[Command], Command]:
    """A decorator that adds options to a command; its help shows them in this order."""

    def add(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def pairs(
    example: str, *, may_be_empty: bool = False, once: bool = False
) -> Callable[[click.Context, click.Parameter, tuple[str, ...]], dict[str, str] | None]:
    """A callback that parses repeated `NAME=VALUE` into a mapping.

    `may_be_empty`: a value may be empty; `once`: no name may be given twice.
    """

    def parsed(
        ctx: click.Context, param: click.Parameter, given: tuple[str, ...]
    ) -> dict[str, str] | None:
        flag, values = param.opts[0], dict[str, str]()
        for text in given:
            name, equals, value = text.partition("=")
            if not (name and equals and (value or may_be_empty)):
                raise CommandError(
                    f"{flag} must be {param.metavar}, as in {flag} {example}; got {text!r}"
                )
            if once and name in values:
                raise CommandError(f"{flag}: {name!r} is given twice")
            values[name] = value
        return values or None

    return parsed
