"""Places in the user's code: a path, a function and an error as `file:line`.

The user's code is what is neither Millstream's nor a library's: an error is put to its deepest
frame there, since that is the line that can be changed.
"""

from __future__ import annotations

import inspect
import os
import sysconfig
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

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


def user_frame(error: BaseException) -> traceback.FrameSummary | None:
    """The deepest frame that the user wrote, else a library's; None if all of it is ours."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(("<frozen importlib", _OURS))
    ]
    users = [frame for frame in frames if not frame.filename.startswith(_LIBRARY)]
    return next(reversed(users or frames), None)


def described(error: BaseException) -> str:
    """An error's type and message, with the user's own line where there is one."""
    frame = user_frame(error)
    where = (
        "" if frame is None else f" ({shown_path(frame.filename)}:{frame.lineno} in {frame.name})"
    )
    text = f"{type(error).__name__}: {error}{where}"
    return text if text.isascii() else text.encode(errors="backslashreplace").decode()
