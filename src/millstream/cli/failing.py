"""How an error ends a process: one line on stderr, and the exit code."""

from __future__ import annotations

import sys
from types import TracebackType

import click

from millstream.errors import CommandError, DefinitionError, MillstreamError

FAILED, WRONG = 1, 2


def exit_code(error: MillstreamError) -> int:
    """2 if what the user wrote is wrong, 1 if the application or the run failed."""
    return WRONG if isinstance(error, DefinitionError | CommandError) else FAILED


def show(error: MillstreamError) -> None:
    click.echo(f"error: {error}", err=True)


def tell_in_one_line(error: MillstreamError) -> None:
    """If nobody catches `error` and the script ends of it, let it end as the command would.

    The error goes on as it is, so that a script may catch it. An interactive session, which does
    not end, keeps its tracebacks, and so does a program with a hook of its own.
    """
    if hasattr(sys, "ps1") or sys.flags.interactive or sys.excepthook is not sys.__excepthook__:
        return

    def hook(kind: type[BaseException], raised: BaseException, trace: TracebackType | None) -> None:
        if raised is not error:
            sys.__excepthook__(kind, raised, trace)
            return
        show(error)
        raise SystemExit(exit_code(error))

    sys.excepthook = hook
