"""`millstream jobs`, from a store and from a server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from jobs_store import JobStore, begins, data, lost, told
from served import MadeStore, served

from millstream.cli.main import main


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two nodes at work, one of which gave a pane up; the third has said nothing."""
    made = JobStore(tmp_path_factory.mktemp("jobs") / "store")
    made.tell(begins("web1", 0), begins("web2", 0))
    made.tell(data("web1", 0, records=1_200, total=1_200), told("web2", 0, 2))
    made.tell(lost("web1", 1, "shed", shed=300, total=1_500))
    made.tell(data("web1", 2, records=600, total=2_100))
    return made.path


def jobs(*words: str) -> Result:
    return CliRunner().invoke(main, ["jobs", *words])


def test_the_list(store: Path) -> None:
    """A line a job; or, as JSON, all that is known of it."""
    listed = "errors: 3 nodes, panes from agents: 1 open, 0 closed, 2,100 read, residual 0\n"
    assert jobs("--store", str(store)).stdout == listed
    assert json.loads(jobs("--store", str(store), "--json").stdout)["totals"]["shed"] == 300


def test_the_scoreboard_of_one(store: Path) -> None:
    """A row a node with a sign a pane; the windows with what they have; where the records went."""
    lines = jobs("errors", "--store", str(store)).stdout.splitlines()
    assert lines[2:5] == ["web1  |9x5??|?????", "web2  |..???|?????", "web3  |?????|?????"]
    (window,) = [line for line in lines if " open " in line and " to " in line]
    assert window.split()[3:] == [
        *("open", "13.3", "%", "30", "%", "66.6", "%", "1,800", "85.7", "%", "85.7", "%"),
        *("10", "absent,", "15", "awaited,", "1", "shed"),
    ]
    assert lines[-4].split() == ["web1", "2,100", "1,800", "0", "300", "0", "0", "0", "0"]
    assert lines[-1].split() == ["all", "2,100", "1,800", "0", "300", "0", "0", "0", "0"]


def test_a_log_that_has_ended(tmp_path: Path) -> None:
    """Its panes after the end have a sign of their own, and it is said where it ended."""
    made = JobStore(tmp_path / "store")
    made.tell(*(begins(node, 0) for node in ("web1", "web2", "web3")))
    made.tell(data("web1", 0, records=10, total=10), told("web2", 0, 4))
    made.tell({**begins("web1", 1, total=10), "over": True})
    lines = jobs("errors", "--store", str(made.path)).stdout.splitlines()
    assert lines[2].startswith("web1  |9====|")
    assert lines[-1] == "ended: web1 at 1970-01-01T00:01:00Z"
    window = next(line for line in lines if " open " in line and " to " in line)
    assert window.endswith("16 awaited")


def test_much_that_is_late_is_said(tmp_path: Path) -> None:
    """With what is likely, below the accounts."""
    made = JobStore(tmp_path / "store")
    made.tell(begins("web1", 300))
    made.tell(data("web1", 300, records=10, total=110, late={"0": 50, "1": 50}))
    *_, last = jobs("errors", "--store", str(made.path)).stdout.splitlines()
    assert last == (
        "warning: web1: 91% of 110 records came late, up to 5h behind: "
        "is its log in another time zone (zone)?"
    )


def test_much_that_is_set_aside_for_its_times_is_said(tmp_path: Path) -> None:
    """In a column of its own, and with what is likely."""
    made = JobStore(tmp_path / "store")
    made.tell(begins("web1", 300))
    made.tell(data("web1", 300, records=10, total=110, dead=100, misdated=60))
    *_, heads, web1, _, _, _, last = jobs("errors", "--store", str(made.path)).stdout.splitlines()
    assert (heads.split()[-1], web1.split()[-1]) == ("misdated", "60")
    assert last.startswith(
        "warning: web1: set aside 55% of 110 records for implausible times: have they another "
        "unit, format or zone (unit, time_format, zone)?"
    )


def test_a_server_says_the_same(store: Path) -> None:
    """With --url the server is asked, and its answer is shown in the same way."""
    with served(store) as url:
        assert jobs("errors", "--url", url).stdout == jobs("errors", "--store", str(store)).stdout
        assert jobs("--url", url).stdout == jobs("--store", str(store)).stdout
        assert jobs("--url", url, "--store", str(store)).exit_code == 2


def test_no_such_job(store: Path, tmp_path: Path) -> None:
    """The nearest is named; a store without jobs says that it has none."""
    found = jobs("error", "--store", str(store))
    assert (found.exit_code, found.stdout) == (2, "")
    assert "there is no job 'error'; did you mean 'errors'?" in found.stderr
    bare = MadeStore(tmp_path / "bare", {"count": "dict"})
    none = jobs("--store", str(bare.path))
    assert (none.exit_code, none.stdout, none.stderr) == (0, "", "no jobs\n")
