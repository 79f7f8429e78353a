"""Places in the user's code: a path, a function or an error as `file:line`.

The user's code is all code that is neither Millstream's nor a library's. An error is attributed to
its deepest frame there, since that is a line that the user can change.
"""

from __future__ import annotations

import inspect
import os
import sysconfig
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

FAILURES = (Exception, SystemExit)
"""The exceptions that a user's function may raise without stopping the application."""
_OURS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")
_LIBRARY = (
    *(os.path.join(sysconfig.get_path(which), "") for which in ("stdlib", "purelib", "platlib")),
    "<frozen ",
    "<string>",  # what dataclasses and named tuples generate
)


def shown_path(path: Path | str) -> str:
    """Returns a path as the user would write it: relative if it is below the working directory."""
    absolute = os.path.abspath(path)
    try:
        relative = os.path.relpath(absolute)
    except ValueError:  # another drive
        return absolute
    above = relative.startswith("..") or os.getcwd() == os.sep  # all is below the root
    return absolute if above else relative


def location(function: Callable[..., Any]) -> str:
    """Returns ` (file:line)` of a function; empty if it is unknown or in Millstream's own code."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is not None and code.co_filename.startswith(_OURS):
        return ""
    return "" if code is None else f" ({shown_path(code.co_filename)}:{code.co_firstlineno})"


class CodeLine(NamedTuple):
    """A line that was running, and the function it is in."""

    filename: str
    lineno: int
    name: str


def user_frame(error: BaseException) -> CodeLine | None:
    """Returns the deepest frame of the user's code, else of a library; None if all are ours.

    It reads the frames only, not their source: one event in a hundred may fail, so it must be fast.
    """
    users, others, at = None, None, error.__traceback__
    while at is not None:
        code = at.tb_frame.f_code
        whose = _whose(code.co_filename)
        if whose != "ours":
            frame = CodeLine(code.co_filename, at.tb_lineno, code.co_name)
            others = frame
            users = frame if whose == "the user's" else users
        at = at.tb_next
    return users or others


@cache
def _whose(filename: str) -> str:
    if filename.startswith(("<frozen importlib", _OURS)):
        return "ours"
    return "a library's" if filename.startswith(_LIBRARY) else "the user's"


_shown = cache(shown_path)
"""Cached, which is right as long as the working directory stays: in a worker it does."""


def described(error: BaseException) -> str:
    """Returns an error's type and message, with the line of the user's code if there is one."""
    frame = user_frame(error)
    where = "" if frame is None else f" ({_shown(frame.filename)}:{frame.lineno} in {frame.name})"
    return _storable(message_of(error) + where)


def message_of(error: BaseException) -> str:
    """Returns an error's type and message, which the user's code makes, and which may fail."""
    name = type(error).__name__
    try:
        return _storable(f"{name}: {error}")
    except FAILURES:
        return _storable(f"{name}, whose message cannot be shown")


def _storable(text: str) -> str:
    return text if text.isascii() else text.encode(errors="backslashreplace").decode()
