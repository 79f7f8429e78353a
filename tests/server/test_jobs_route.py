"""GET /jobs and GET /jobs/{name}: what is seen of jobs over windows; also in /status, /metrics."""

from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from jobs_store import MINUTE, NODES, JobStore, begins, data, lost, told
from prometheus_client.parser import text_string_to_metric_families
from served import MadeStore, asked
from test_server_openapi import misfits

from millstream.server.jobs.job_routes import Jobs
from millstream.server.open_store import OpenStore
from millstream.server.openapi.openapi_document import document
from millstream.server.options import ServerOptions
from millstream.server.service import Service
from millstream.stores.reader import SlateReader
from millstream.windows.job_view import SHOWN, shown
from millstream.windows.placed import job_parts


@pytest.fixture
def made(tmp_path: Path) -> JobStore:
    """Three nodes have begun; of the third nothing more is heard."""
    made = JobStore(tmp_path / "store", latency="1s", corrections=5)
    made.tell(begins("web1", 0), begins("web2", 2), begins("web3", 0))
    made.tell(data("web1", 0, records=12, total=12), lost("web1", 1, "shed", shed=7, total=19))
    made.tell(told("web1", 2, 4, total=19), data("web2", 2, records=3, total=4, dead=1))
    return made


def job(client: httpx.Client) -> dict[str, Any]:
    answer = client.get("/jobs/errors")
    assert answer.status_code == 200, answer.text
    written = document()["paths"]["/jobs/{name}"]["get"]["responses"]["200"]["content"]
    found: dict[str, Any] = answer.json()
    assert misfits(found, written["application/json"]["schema"]) == []
    return found


def marks(found: dict[str, Any], node: str) -> dict[int, tuple[str, str | None]]:
    """Returns the marks of a node's panes."""
    cells = {pane["pane"]: pane["nodes"][node] for pane in found["panes"]}
    return {pane: (cell["mark"], cell["why"]) for pane, cell in cells.items()}


def test_the_scoreboard(made: JobStore) -> None:
    """Each pane of each node is there: with data, empty, lost and why, or awaited; up to the end of
    the window that the nodes are in."""
    with asked(made.path) as client:
        found = job(client)
    assert found["nodes"] == list(NODES)
    assert [pane["pane"] for pane in found["panes"]] == list(range(10))
    awaited: dict[int, tuple[str, str | None]] = dict.fromkeys(range(10), ("awaited", None))
    shed, empty = ("lost", "shed"), ("empty", None)
    assert marks(found, "web1") == {**awaited, 0: ("data", None), 1: shed, 2: empty, 3: empty}
    absent = dict.fromkeys((0, 1), ("lost", "absent"))
    assert marks(found, "web2") == {**awaited, **absent, 2: ("data", None)}
    assert marks(found, "web3") == awaited
    first, second, *_ = found["panes"]
    assert (first["from"], first["to"]) == (0, MINUTE)
    given = {
        "mark": "data",
        "why": None,
        "records": 12,
        "bytes": 120,
        "shed": 0,
        "gap": 0,
        "late": 0,
    }
    assert first["nodes"]["web1"] == given
    assert second["nodes"]["web1"]["shed"] == 7


def test_an_open_window(made: JobStore) -> None:
    """The answer has its fractions of all panes, of its panes, of its nodes, and of the known
    records."""
    with asked(made.path) as client:
        found = job(client)
    (window,) = found["windows"]
    assert (found["open"], found["closed"]) == (1, 0)
    assert (window["from"], window["to"], window["state"]) == (0, 10 * MINUTE, "open")
    missing = {"absent": 2, "awaited": 23, "shed": 1}
    assert window["coverage"] == {
        **{"area": 4 / 30, "time": 3 / 10, "space": 2 / 3},
        "missing": missing,
    }
    assert window["completeness"] == {
        "records": 15 / 22,
        "bytes": 15 / 22,
        "unknown_panes": 25,
        "late": 0.0,
        "misdated": 0.0,
    }
    assert window["account"]["read"] == 23


def test_a_closed_window(made: JobStore) -> None:
    """The answer says why it was closed. Panes that never came are missing from then on. Other
    windows are still open."""
    made.tell(begins("web1", 5, total=19), data("web1", 5, records=2, total=21))
    made.wait("11m")
    with asked(made.path) as client:
        found = job(client)
    still_open, closed = found["windows"]
    assert (closed["state"], closed["why"]) == ("closed", "latency")
    assert (still_open["state"], still_open["why"]) == ("open", None)
    assert (found["open"], found["closed"]) == (1, 1)
    web3 = marks(found, "web3")
    assert web3[4] == ("missing", None), "it is in the closed window alone"
    assert web3[5] == ("awaited", None), "the next one has it too"


def test_every_record_is_accounted_for(made: JobStore) -> None:
    """The accounts are by node and in total, in the job, in /status and for Prometheus. A residual
    shows in all of them."""
    with asked(made.path) as client:
        found = job(client)
        fates = ("read", "on_time", "late", "shed", "dead", "residual")
        assert [found["accounts"]["web1"][one] for one in fates] == [19, 12, 0, 7, 0, 0]
        assert [found["accounts"]["web2"][one] for one in fates] == [4, 3, 0, 0, 1, 0]
        assert [found["totals"][one] for one in fates] == [23, 15, 0, 7, 1, 0]
        status = client.get("/status").json()["jobs"]["errors"]
        assert status == {
            "nodes": found["accounts"],
            "silent": [],
            "warnings": [],
            "residual": 0,
            "open": 1,
            "closed": 0,
        }
        assert client.get("/jobs").json() == {"jobs": {"errors": status}}
        made.tell(data("web1", 4, records=1, total=25))  # five of its records are nowhere
        assert job(client)["totals"]["residual"] == 5
        samples = {
            (one.name, one.labels.get("node")): one.value
            for family in text_string_to_metric_families(client.get("/metrics").text)
            for one in family.samples
        }
    assert samples["millstream_job_records_residual", "web1"] == 5
    assert samples["millstream_job_records_shed_total", "web1"] == 7
    assert samples["millstream_job_records_dead_total", "web2"] == 1
    assert samples["millstream_windows_open", None] == 1


def test_late_records(made: JobStore) -> None:
    """Records that a node reads after it has sent their pane are late, in its account and in the
    window's."""
    made.tell(data("web2", 3, records=2, total=8, late={"2": 2}))
    with asked(made.path) as client:
        found = job(client)
    assert found["accounts"]["web2"]["late"] == 2
    assert found["windows"][0]["account"]["late"] == 2
    assert found["totals"]["residual"] == 0


def test_it_is_as_of_the_last_batch(made: JobStore) -> None:
    """A server that was asked before answers anew once a batch was committed."""
    with asked(made.path) as client:
        before = job(client)
        assert job(client) == before
        batch = made.tell(data("web3", 0, records=9, total=9))
        after = job(client)
    assert (before["batch"], after["batch"]) == (batch - 1, batch)
    assert marks(after, "web3")[0] == ("data", None)


def test_several_reducers_show_one_job(tmp_path: Path) -> None:
    """Each has the marks of all nodes: what is seen of a job is the same, however many it has."""
    views = []
    for reducers in (1, 3):
        made = JobStore(tmp_path / str(reducers), reducers=reducers, range="5m")
        for node in NODES:
            made.tell(begins(node, 0))
            made.tell(*(data(node, pane, 2, 2 + 2 * pane) for pane in range(7)))
        with asked(made.path) as client:
            views.append(job(client))
    assert [view.pop("reducers") for view in views] == [1, 3]
    assert views[0] == views[1]
    assert (views[0]["closed"], views[0]["totals"]["read"]) == (1, 42)


def test_a_node_that_is_ahead(tmp_path: Path) -> None:
    """Where most nodes are is what is shown, also if the clock of one is days ahead."""
    made = JobStore(tmp_path / "store")
    made.tell(*(begins(node, 0) for node in NODES[:2]), begins("web3", 5_000))
    made.tell(*(told(node, pane) for pane in range(3) for node in NODES[:2]))
    made.tell(data("web3", 5_000, records=1, total=1))
    with asked(made.path) as client:
        panes = [pane["pane"] for pane in job(client)["panes"]]
    assert panes == list(range(10))


def test_a_job_of_many_nodes_has_a_limit(made: JobStore) -> None:
    """The more nodes there are, the fewer panes are shown."""
    nodes = [f"node{number}" for number in range(1_000)]
    described = {**made.job_app.parts["errors"].described(), "nodes": nodes}
    meta = {"first": 0, "at": dict.fromkeys(nodes, 500), "from": {}, "closed": [], "schedule": []}
    boards: dict[str, Any] = {f"board|{pane + (1 << 62):020d}": {} for pane in range(500)}
    part = job_parts({"errors": described})["errors"]
    found = shown("errors", part, {"1/0": {"meta": meta, **boards}}, 7)
    assert [column.pane for column in found.panes] == list(range(494, 500))
    assert len(found.accounts) == 1_000


def test_values_are_not_read(made: JobStore) -> None:
    """Only the shown entries of the root's table are read. The values of keys are not."""
    with SlateReader(made.path) as reader:
        batch, tables = reader.entries("errors.root", SHOWN)
        assert batch == reader.batch
    values = {entry for entry in made.stored["1/0"] if entry.startswith(("pane|", "tally|"))}
    assert values
    assert tables["1/0"].keys() == made.stored["1/0"].keys() - values


def test_a_job_that_nothing_was_told(tmp_path: Path) -> None:
    """The job is shown without panes. So it is in a store from before it was added."""
    made = JobStore(tmp_path / "store")
    made.commit()
    with asked(made.path) as client:
        found = job(client)
        assert (found["panes"], found["windows"], found["reducers"]) == ([], [], None)
        assert found["totals"]["residual"] == 0
    (tmp_path / "old").mkdir()
    old = MadeStore(tmp_path / "old" / "store", {"count": "dict"})
    (old.path / "app.json").write_bytes((made.path / "app.json").read_bytes())
    with asked(old.path) as client:
        assert job(client)["panes"] == []


def test_no_such_job(made: JobStore, tmp_path: Path) -> None:
    """The nearest is named; an application without jobs has none, and says so."""
    with asked(made.path) as client:
        answer = client.get("/jobs/error")
        assert answer.status_code == 404
        assert "there is no job 'error'; did you mean 'errors'?" in answer.json()["error"]
        assert client.get("/jobs?x=1").status_code == 400
    with asked(MadeStore(tmp_path / "bare", {"count": "dict"}).path) as client:
        assert client.get("/jobs").json() == {"jobs": {}}
        assert client.get("/status").json()["jobs"] == {}
        assert "the application has none" in client.get("/jobs/errors").json()["error"]


def test_panes_that_were_let_go_are_still_shown(tmp_path: Path) -> None:
    """Once all windows of a pane are closed the root drops it, but its result is still shown."""
    made = JobStore(tmp_path / "store", range="5m")
    made.tell(*(begins(node, 0) for node in NODES))
    made.tell(*(told(node, pane) for pane in range(13) for node in NODES))
    with asked(made.path) as client:
        found = job(client)
    assert found["closed"] == 2
    assert [pane["pane"] for pane in found["panes"]] == list(range(15))
    assert [mark for mark, _ in marks(found, "web1").values()] == 13 * ["empty"] + 2 * ["awaited"]


def test_a_gap_is_seen(made: JobStore) -> None:
    """In the cell of the pane, in the account of the node, in the window, in /status, and for
    Prometheus: what the pane has is not all of it."""
    made.tell(data("web2", 3, records=2, total=6, gap=80), told("web2", 4, 6, total=6, gap=-1))
    with asked(made.path) as client:
        found = job(client)
        status = client.get("/status").json()["jobs"]["errors"]
        metrics = client.get("/metrics").text
    gaps = {pane["pane"]: pane["nodes"]["web2"]["gap"] for pane in found["panes"]}
    assert [gaps[pane] for pane in (2, 3, 4, 5)] == [0, 80, -1, -1]
    assert (found["accounts"]["web1"]["gaps"], found["accounts"]["web2"]["gaps"]) == (0, 3)
    assert (found["totals"]["gaps"], status["nodes"]["web2"]["gaps"]) == (3, 3)
    window = found["windows"][0]
    assert (window["account"]["gaps"], window["completeness"]["unknown_panes"]) == (3, 25)
    assert 'millstream_job_panes_with_gaps_total{job="errors",node="web2"} 3.0' in metrics


def test_a_window_that_was_only_reached_is_not_listed(tmp_path: Path) -> None:
    """Agents that stop at the end of their logs have reached the next window, which may stay empty.
    It is listed once a pane of it has come."""
    made = JobStore(tmp_path / "store", range="5m")
    for node in NODES:
        made.tell(begins(node, 0), *(data(node, pane, 2, 2 + 2 * pane) for pane in range(5)))
    with asked(made.path) as client:
        found = job(client)
        assert (found["open"], found["closed"]) == (0, 1)
        assert [one["state"] for one in found["windows"]] == ["closed"]
        made.tell(told("web1", 5, total=10))
        assert [one["state"] for one in job(client)["windows"]] == ["open", "closed"]


def test_a_change_of_the_reducers_is_announced(made: JobStore) -> None:
    """Until a node has come to the first window of the new number."""
    with asked(made.path) as client:
        assert (job(client)["reducers"], job(client)["change"]) == (1, None)
        made.reduce(2)
        assert job(client)["change"] == {"reducers": 2, "from": 5 * MINUTE}
        made.tell(data("web1", 4, records=1, total=20), told("web1", 5, total=20))
        found = job(client)
        assert (found["reducers"], found["change"]) == (2, None)


def test_whoever_runs_the_server_is_told_what_is_late(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Once for each node of a job, with what is likely, though the figures change."""
    made = JobStore(tmp_path / "store")
    made.tell(begins("web1", 300), begins("web2", 300))
    made.tell(data("web1", 300, records=10, total=110, late={"0": 50, "1": 50}))

    async def tell_twice() -> None:
        with closing(OpenStore(made.path)) as store:
            jobs = Jobs(Service(ServerOptions(made.path), store, "http://127.0.0.1"))
            await jobs.tell()
            made.tell(data("web1", 301, records=10, total=130, late={"1": 10}))
            made.tell(told("web2", 300, 301))
            await jobs.tell()

    asyncio.run(tell_twice())
    assert capsys.readouterr().err == (
        "millstream: warning: job 'errors': web1: 91% of 110 records came late, up to 5h behind: "
        "is its log in another time zone (zone)?\n"
    )
