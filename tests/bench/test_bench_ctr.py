"""The CTR stress test: its data, its sender, what it counts as lost, its picture; no timings."""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from bench import ctr, ctr_data, ctr_plot, ctr_sending
from bench.apart import RunFailedError
from bench.bench import Bench
from examples.ctr_traffic import traffic
from examples.ctr_truth import relative_error, true_rates

EVENTS = 1_000
STATUS: dict[str, Any] = {
    "events": EVENTS,
    "late": 0,
    "dead_letters": 0,
    "deliveries": {"residual": 0, "dropped": 0, "diverted": 0},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ctr_data.made(tmp_path_factory.mktemp("data"), EVENTS)


def lines(folder: Path, name: str) -> list[Any]:
    return [json.loads(line) for line in (folder / name).read_text().splitlines()]


# -- the data -------------------------------------------------------------------------------------


def test_the_data_is_the_traffic_and_its_truth(folder: Path) -> None:
    """Records by source, the order of both together, and the true windows; made only once."""
    arrivals = list(traffic(ctr_data.described(EVENTS)))
    order = (folder / "order").read_bytes()
    files = [iter(lines(folder, name)) for name in ctr_data.SOURCES]
    assert [(ctr_data.SOURCES[place], next(files[place])) for place in order] == arrivals
    assert ctr_data.truth_of(folder) == true_rates(arrivals)
    before = folder.stat().st_mtime_ns
    assert ctr_data.made(folder.parent, EVENTS) == folder
    assert folder.stat().st_mtime_ns == before


def put_out(folder: Path, windows: ctr_data.Windows, *, standard: bool = False) -> Path:
    """A sink's files with these windows."""
    folder.mkdir()
    rows = []
    for (until, query, ad), (shown, clicks) in windows.items():
        counts = {"impressions": shown, "clicks": clicks}
        named: dict[str, Any] = {"until": until, "query": query, "ad": ad}
        if standard:
            named = {"key": f"{query}|{ad}", "to": until * 1_000}
        rows.append(json.dumps({"key": "", "value": {**named, **counts}}))
    (folder / "part.jsonl").write_text("\n".join(rows) + "\n")
    return folder


@pytest.mark.parametrize("standard", [False, True])
def test_what_was_put_out_is_compared_with_the_truth(
    folder: Path, tmp_path: Path, standard: bool
) -> None:
    """Nothing is wrong when it is the truth, from either application."""
    truth = ctr_data.truth_of(folder)
    found = ctr._compared(folder, put_out(tmp_path / "out", truth, standard=standard))
    assert (found["error_percent"], found["wrong"]) == (0.0, 0)
    assert found["windows"] == len(truth)


def test_a_click_too_few_is_found(folder: Path, tmp_path: Path) -> None:
    """A wrong window, a missing one and a surplus one are three errors. The error is only of the
    last windows."""
    truth = ctr_data.truth_of(folder)
    first, last = min(truth), max(truth)
    wrong = {**truth, last: (truth[last][0] + 1, truth[last][1]), (1, "q", "a"): (1, 1)}
    del wrong[first]
    assert ctr._compared(folder, put_out(tmp_path / "out", wrong))["wrong"] == 3
    late = {**truth, first: (10**6, 1)}
    assert ctr._compared(folder, put_out(tmp_path / "late", late))["error_percent"] == 0.0


def test_a_window_twice_is_an_error(folder: Path, tmp_path: Path) -> None:
    """Duplicate output is an error even if both copies are equal."""
    out = put_out(tmp_path / "out", ctr_data.truth_of(folder))
    (out / "more.jsonl").write_text((out / "part.jsonl").read_text())
    with pytest.raises(ValueError, match="put out twice"):
        ctr_data.published(out)


def test_the_error_is_relative_and_a_missing_pair_is_all_wrong() -> None:
    """A tenth instead of a fifth is half wrong, whatever the number of impressions."""
    truth = {"a": (10, 2), "b": (10, 0)}
    assert relative_error(truth, truth) == 0.0
    assert relative_error({"a": (100, 10), "b": (10, 0)}, truth) == 0.25
    assert relative_error({"a": (10, 2)}, truth) == 0.5
    assert relative_error({"a": (10, 2), "b": (10, 1)}, truth) == 0.5


# -- the sender -----------------------------------------------------------------------------------


class Taken(ThreadingHTTPServer):
    """Takes events, and keeps the bodies by path."""

    bodies: dict[str, list[bytes]]
    status = 200

    def handle_error(self, *_: object) -> None: ...  # a sender that has failed hangs up


class _Take(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Taken

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.bodies[self.path].append(body)
        answer = json.dumps({"accepted": body.count(b"\n")}).encode()
        head = f"HTTP/1.1 {self.server.status} X\r\ncontent-length: {len(answer)}\r\n\r\n"
        self.wfile.write(head.encode() + answer)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def taking() -> Iterator[Taken]:
    server = Taken(("127.0.0.1", 0), _Take)
    server.bodies = defaultdict(list)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def url_of(server: Taken) -> str:
    return f"http://127.0.0.1:{server.server_port}"


@pytest.mark.parametrize("rate", [None, 20_000])
def test_every_record_is_sent_once_in_its_order(
    folder: Path, taking: Taken, rate: int | None
) -> None:
    """A part, and then the rest from there on; each source's own records to its own stream."""
    url = url_of(taking)
    parts = [
        ctr_sending.send(url, str(folder), rate, stop=300, beat=0.001),
        ctr_sending.send(url, str(folder), rate, start=300, beat=0.001),
    ]
    assert [(part["sent"], part["accepted"]) for part in parts] == [(300, 300), (700, 700)]
    for name in ctr_data.SOURCES:
        assert b"".join(taking.bodies[f"/streams/{name}"]) == (folder / name).read_bytes()
    if rate is not None:
        assert parts[1]["seconds"] >= 700 / rate * 0.9


def test_what_is_not_taken_ends_the_run(folder: Path, taking: Taken) -> None:
    """A server that refuses events is not a server that lost them."""
    taking.status = 429
    with pytest.raises(RunFailedError, match="429"):
        ctr_sending.send(url_of(taking), str(folder), None)


# -- what is counted ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "lost"),
    [
        ({}, 0),
        ({"events": EVENTS - 3}, 3),
        ({"late": 2, "dead_letters": 1}, 3),
        ({"deliveries": {"residual": -1, "dropped": 2, "diverted": 3}}, 6),
    ],
)
def test_whatever_does_not_get_through_is_lost(
    monkeypatch: pytest.MonkeyPatch, changed: dict[str, Any], lost: int
) -> None:
    """Late, dead, dropped, diverted, missing or unaccounted for."""
    monkeypatch.setattr(ctr, "WARM_UP", 0)
    assert ctr._lost(EVENTS, EVENTS, {**STATUS, **changed}) == lost
    assert ctr._lost(EVENTS, EVENTS - 5, {**STATUS, **changed}) == lost + 5


@pytest.mark.parametrize(
    ("at_once", "tried"),
    [
        (30_100.0, [30_000, 27_000, 24_000]),
        (20_900.0, [20_500, 25_000, 30_000]),
        (100_000.0, [100_000, 90_000, 81_000, 72_500]),
    ],
)
def test_rates_are_tried_until_it_turns(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, at_once: float, tried: list[int]
) -> None:
    """The search starts from the rate of all events at once, and goes up while rates hold, or down
    to one that does, a few times."""

    def run(_: Bench, what: str, rate: int, events: int) -> dict[str, Any]:
        return {"what": what, "rate": rate, "holds": rate <= 25_500}

    monkeypatch.setattr(ctr, "_run", run)
    rows = ctr._highest(Bench(tmp_path), ctr.Plan(up=1.2, down=0.9, tries=4), at_once)
    assert [row["rate"] for row in rows] == tried


def test_the_lower_rates_take_a_part_of_the_events() -> None:
    """Some seconds each below 20,000 a second; from there on all of them."""
    plan = ctr.Plan(seconds=15.0)
    assert plan.events_at(2_000) == 30_000
    assert plan.events_at(16_000) == 240_000
    assert plan.events_at(20_000) == plan.events_at(31_000) == 3_000_000


def test_the_picture_has_both_lines() -> None:
    """Ours and the paper's, and the rate that held."""
    rows = [
        {"rate": 2_000, "error_percent": 0.0, "paper_percent": 0.0},
        {"rate": 20_000, "error_percent": 0.0, "paper_percent": 4.2},
        {"rate": None, "error_percent": 0.0},
        {"rate": 25_000, "error_percent": 0.0},
    ]
    found = {"rows": rows, "figures": {"highest_per_s": 25_000}}
    (name, picture), *_ = ctr_plot.pictures(found).items()
    assert name == "ctr-error.svg"
    ElementTree.fromstring(picture)
    assert "S4, 8 servers" in picture
    assert "Millstream, 2 cores" in picture
    assert ctr_plot.part(found, "error").startswith("![")
