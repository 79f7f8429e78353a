"""Ends a process on an error: one line on stderr, and the exit code."""

from __future__ import annotations

import sys
from types import TracebackType

import click

from millstream.errors import (
    ClientError,
    CommandError,
    DefinitionError,
    MillstreamError,
    MissingExtra,
)

FAILED, WRONG, INTERRUPTED = 1, 2, 130
UNAUTHORIZED = 401
"""The status of a request without a token that the server knows."""


def exit_code(error: MillstreamError) -> int:
    """Returns 2 if the user's input is wrong, 1 if the application or the run failed."""
    return WRONG if isinstance(error, DefinitionError | CommandError | MissingExtra) else FAILED


def show(error: MillstreamError) -> None:
    needs_token = isinstance(error, ClientError) and error.status == UNAUTHORIZED
    advice = "; name its file with --token-file, or set MILLSTREAM_TOKEN" if needs_token else ""
    click.echo(f"error: {error}{advice}", err=True)


def tell_in_one_line(error: MillstreamError) -> None:
    """If `error` ends the script uncaught, shows it and exits as the command line would.

    The error itself is still raised, so that a script may catch it. An interactive session, which
    does not end, keeps its tracebacks, and so does a program with an excepthook of its own.
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
