"""Where in the user's code something is."""

import json
from pathlib import Path

import pytest

import millstream as ms
from millstream.model.place import described, location, shown_path, user_frame


def raised(code: str, file: str) -> Exception:
    """Returns the error that the code of a file raises."""
    try:
        exec(compile(code, file, "exec"), {"json": json, "ms": ms})
    except Exception as error:
        return error
    raise AssertionError("it must raise")


def test_the_deepest_line_of_the_user_is_named() -> None:
    """Not the standard library's line below it, nor Millstream's."""
    error = raised("\n\njson.loads('{')", "/home/ann/app.py")
    assert described(error).endswith(" (/home/ann/app.py:3 in <module>)")
    error = raised("\nms.timer()", "/home/ann/app.py")
    assert described(error).endswith(" (/home/ann/app.py:2 in <module>)")


def test_a_folder_called_millstream_may_be_the_users() -> None:
    """Millstream's own files are recognised by their place of installation, not by a name."""
    error = raised("1 / 0", "/home/ann/millstream/app.py")
    assert described(error) == (
        "ZeroDivisionError: division by zero (/home/ann/millstream/app.py:1 in <module>)"
    )


def test_an_error_that_was_not_raised_has_no_place() -> None:
    """The text is the error's own then; what is not ASCII is escaped."""
    assert user_frame(ValueError("x")) is None
    assert described(ValueError("\ud800")) == "ValueError: \\ud800"


def test_paths_are_shown_as_the_user_would_write_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Relative below where they stand, whole elsewhere."""
    monkeypatch.chdir(tmp_path)
    assert shown_path(tmp_path / "in" / "app.py") == "in/app.py"
    assert shown_path(tmp_path.parent / "app.py") == str(tmp_path.parent / "app.py")
    assert location(len) == ""


def test_from_the_root_a_path_keeps_its_slash(monkeypatch):
    """All is below the root, and `tmp/x` would not look like the place it is."""
    monkeypatch.chdir("/")
    assert shown_path("/tmp/x") == "/tmp/x"
