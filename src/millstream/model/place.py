"""Places in the user's code: a path, a function and an error as `file:line`.

The user's code is what is neither Millstream's nor a library's: an error is put to its deepest
frame there, since that is the line that can be changed.
"""

from __future__ import annotations

import inspect
import os
import sysconfig
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

_OURS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")
_LIBRARY = (
    *(os.path.join(sysconfig.get_path(which), "") for which in ("stdlib", "purelib", "platlib")),
    "<frozen ",
    "<string>",  # what dataclasses and named tuples generate
)


def shown_path(path: Path | str) -> str:
    """A path as the user would write it: relative when it lies below where they stand."""
    absolute = os.path.abspath(path)
    try:
        relative = os.path.relpath(absolute)
    except ValueError:  # another drive
        return absolute
    above = relative.startswith("..") or os.getcwd() == os.sep  # all is below the root
    return absolute if above else relative


def location(function: Callable[..., Any]) -> str:
    """` (file:line)` of a function; empty if it is unknown, or ours and no place to change."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is not None and code.co_filename.startswith(_OURS):
        return ""
    return "" if code is None else f" ({shown_path(code.co_filename)}:{code.co_firstlineno})"


class Frame(NamedTuple):
    """A line that was running, and the function it is in."""

    filename: str
    lineno: int
    name: str


def user_frame(error: BaseException) -> Frame | None:
    """The deepest frame that the user wrote, else a library's; None if all of it is ours.

    It looks at the frames only, not at their source: an event in a hundred may fail.
    """
    users, others, at = None, None, error.__traceback__
    while at is not None:
        code = at.tb_frame.f_code
        whose = _whose(code.co_filename)
        if whose != "ours":
            frame = Frame(code.co_filename, at.tb_lineno, code.co_name)
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
"""Good as long as nobody changes where they stand: in a worker, nobody does."""


def described(error: BaseException) -> str:
    """An error's type and message, with the user's own line where there is one."""
    frame = user_frame(error)
    where = "" if frame is None else f" ({_shown(frame.filename)}:{frame.lineno} in {frame.name})"
    text = f"{type(error).__name__}: {error}{where}"
    return text if text.isascii() else text.encode(errors="backslashreplace").decode()
