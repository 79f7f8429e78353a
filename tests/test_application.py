"""`millstream.App` as Python, a type checker and a notebook see it."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest
from mypy import api

import millstream as ms

TYPED = """
import millstream as ms

app = ms.App("typed")
app.source("visits", key="user")


@app.map("visits", publishes="seen")
def see(event: ms.Event) -> list[ms.Effect]:
    return [ms.emit(key=event.key)]


@app.update("seen")
def count(event: ms.Event, slate: dict[str, int]) -> None:
    slate["n"] = slate.get("n", 0) + 1


@count.on_timer
def fired(timer: ms.Timer, slate: dict[str, int]) -> None: ...


reveal_type(see)
reveal_type(fired)
see("no event")
ms.emitt(key="x")
"""

# The names of these libraries are in no signature of TYPED, and they are half of what mypy reads.
WITHOUT_LIBRARIES = """
[mypy]
strict = True

[mypy-httpx.*,numpy.*,obstore.*,pandas.*,psycopg.*,pyspark.*,rich.*]
follow_imports = skip
follow_imports_for_stubs = True
"""


def test_a_type_checker_sees_names_and_signatures(tmp_path: Path) -> None:
    """A misspelt name and a wrong argument are errors; decorated functions keep their types."""
    file = tmp_path / "typed.py"
    file.write_text(TYPED)
    options = tmp_path / "mypy.ini"
    options.write_text(WITHOUT_LIBRARIES)
    said, _, _ = api.run(
        [f"--config-file={options}", "--cache-dir=/dev/null", "--no-error-summary", str(file)]
    )
    assert "FunctionHandle[[event: " in said
    assert "def (timer: " in said
    errors = [line for line in said.splitlines() if ": error: " in line]
    assert len(errors) == 2, said
    assert "Argument 1" in errors[0]
    assert 'Module has no attribute "emitt"' in errors[1]


def test_a_decorated_function_keeps_its_signature_and_is_callable() -> None:
    """inspect sees the function's own parameters, and keywords work."""
    app = ms.App("called")
    app.source("visits", key="user")

    @app.update("visits")
    def count(event: Any, slate: Any) -> str:
        """Counts."""
        return f"{event} {slate}"

    assert list(inspect.signature(count).parameters) == ["event", "slate"]
    assert count.__doc__ == "Counts."
    assert count(event=1, slate=2) == "1 2"


def test_an_application_shows_itself() -> None:
    """Its repr says what it has; a notebook gets the drawing of the workflow."""
    app = ms.App("shown")
    app.source("visits", key="user")

    @app.update("visits")
    def count(event: Any, slate: Any) -> None: ...

    assert repr(app) == "<App 'shown': 1 source, 1 function>"
    assert app._repr_svg_().startswith("<svg")
    assert "visits" in app._repr_svg_()


def test_what_users_catch_and_annotate_is_public() -> None:
    """Effect, ClientError, SlateReader and RunningApp are names of the package."""
    for name in ("Effect", "ClientError", "SlateReader", "RunningApp"):
        assert name in ms.__all__
        assert getattr(ms, name) is not None
    with pytest.raises(AttributeError, match="emitt"):
        ms.emitt  # type: ignore[attr-defined]  # noqa: B018
