"""A job whose windows differ from those in its store is refused at the start."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from jobs_store import JobStore, application, begins, data
from progress_counts import functions

from millstream.driver.startup.compatibility import check_parts, lasting
from millstream.errors import StoreError
from millstream.stores.progress import Progress


def refusal(made: JobStore, taken: int, **options: Any) -> str:
    """Returns the error of an application whose job has these windows; empty if there is none."""
    progress = Progress(
        batch=3, functions=functions(processed={"errors.root": taken, "errorsome.root": 7})
    )
    try:
        check_parts(application(**options).workflow().parts, made.home, progress)
    except StoreError as error:
        return str(error)
    return ""


@pytest.fixture
def made(tmp_path: Path) -> JobStore:
    """A store of windows of ten minutes every five, in panes of one."""
    made = JobStore(tmp_path / "store")
    made.tell(begins("web1", 0), data("web1", 0, records=2, total=2))
    made.home.know_parts(lasting(made.job_app.workflow().parts))
    return made


@pytest.mark.parametrize(
    "changed",
    [{"range": "20m"}, {"slide": "10m"}, {"pane": "30s"}, {"by": "records", "range": 10}],
)
def test_other_windows_are_refused(made: JobStore, changed: dict[str, Any]) -> None:
    """The error names the windows of the store and of the application, and what to do."""
    options = changed if "by" not in changed else {**changed, "slide": None, "pane": None}
    said = refusal(made, 1, **options)
    assert "'errors' has windows of 10m every 5m in panes of 1m of time here" in said
    assert "another name, or start with a new store" in said


def test_the_same_windows_go_on(made: JobStore) -> None:
    """Any other part of the job may change."""
    assert refusal(made, 1, latency="5s", range="600s") == ""


def test_a_job_that_has_taken_nothing_may_change(made: JobStore) -> None:
    """There are no panes that could be misread. A job whose name has the same beginning is another
    one."""
    assert refusal(made, 0, range="20m") == ""


def test_a_store_remembers_the_windows(made: JobStore) -> None:
    """Also after the application was run without the job, or was refused."""
    made.home.know_parts({})
    assert type(made.home).open(made.path).facts.parts == {
        "errors": "windows of 10m every 5m in panes of 1m of time"
    }
