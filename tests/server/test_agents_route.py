"""POST /agents/{node}, GET /agents and what agents fetch, over loopback."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from jobs_store import JobStore, publish, withdraw
from served import asked
from test_server_openapi import misfits

from millstream.server.openapi.openapi_document import document
from millstream.stores.package_files import put_package
from millstream.trees.messages import Hello, HelloAnswer, JobTicket, Member


@pytest.fixture
def made(tmp_path: Path) -> JobStore:
    return JobStore(tmp_path / "store")


def as_written(path: str, method: str, answer: httpx.Response) -> Any:
    assert answer.status_code == 200, answer.text
    written = document()["paths"][path][method]["responses"]["200"]["content"]
    assert misfits(answer.json(), written["application/json"]["schema"]) == []
    return answer.json()


def greet(client: httpx.Client, member: Member, *below: Member, **more: Any) -> HelloAnswer:
    hello = msgspec.json.encode(Hello(member, list(below), **more))
    answer = client.post(f"/agents/{member.node}", content=hello)
    return msgspec.convert(as_written("/agents/{node}", "post", answer), HelloAnswer)


def test_who_says_hello_is_seated_and_listed(made: JobStore) -> None:
    """The first is below the root; what it says is in the list."""
    member = Member("web1", 1, url="http://web1:8480", capacity=32, version="9", jobs=[])
    with asked(made.path) as client:
        answer = greet(client, member)
        seat = answer.orders["web1"].seat
        assert seat is not None
        assert (seat.number > 0, seat.parent, seat.url) == (True, "", "")
        (row,) = as_written("/agents", "get", client.get("/agents"))["agents"]
        heard = row.pop("heard")
    assert 0 <= heard < 5
    assert row == {
        "node": "web1",
        "parent": None,
        "depth": 1,
        "address": "http://web1:8480",
        "children": [],
        "jobs": [],
        "version": "9",
    }


def test_agents_are_told_what_to_run(made: JobStore) -> None:
    """A hosting agent, and those below it, get the jobs of their nodes, and again when a version
    changes. So do they get a job without a definition, to be told why it cannot run. An agent with
    an application of its own gets none."""
    publish(made, {"version": "v1", "definition": {"name": "errors"}})
    web1, web2 = Member("web1", 1, hosts=True), Member("web2", 1, hosts=True)
    with asked(made.path) as client:
        orders = greet(client, web1, web2, Member("web3"), Member("web9", hosts=True)).orders
        wanted = {node: order.jobs for node, order in orders.items()}
        ticket = [JobTicket("errors", "v1")]
        assert wanted == {"web1": ticket, "web2": ticket, "web3": None, "web9": None}
        running = msgspec.structs.replace(web1, jobs=ticket)
        assert greet(client, running).orders["web1"].jobs is None
        publish(made, {"version": "v2", "definition": {"name": "errors"}})
        assert greet(client, running).orders["web1"].jobs == [JobTicket("errors", "v2")]
        publish(made, None)
        assert greet(client, running).orders["web1"].jobs == [JobTicket("errors", "")]
        withdraw(made)
        assert greet(client, running).orders["web1"].jobs == []


def test_definitions_and_packages(made: JobStore) -> None:
    """The published definitions and packages are served unchanged. A job that is only Python has no
    definition."""
    with asked(made.path) as client:
        assert client.get("/jobs/error/definition").status_code == 404
        publish(made, None)
        refused = client.get("/jobs/errors/definition")
        assert (refused.status_code, "--package" in refused.text) == (409, True)
        name = put_package(made.path, b"code")
        publish(made, {"version": name, "package": name})
        answer = as_written("/jobs/{name}/definition", "get", client.get("/jobs/errors/definition"))
        assert answer == {"version": name, "package": name}
        package = client.get(f"/packages/{name}")
        assert sha256(package.content).hexdigest() == name
        assert package.headers["content-type"] == "application/zip"
        for other in ("0" * 64, "..%2Fstore.json", name.upper()):
            assert client.get(f"/packages/{other}").status_code == 404


def test_what_is_no_hello(made: JobStore) -> None:
    """A hello for another node, without a name, with invalid JSON or without a token is refused."""
    with asked(made.path, token="t" * 20) as client:
        for path, body, words in (
            ("/agents/web1", b'{"member":{"node":"web2"}}', "must be of node 'web1'"),
            ("/agents/web1", b'{"member":{"node":"web1"},"below":[{"node":""}]}', "length >= 1"),
            ("/agents/web1", b"hello", "an agent's hello as JSON"),
        ):
            answer = client.post(path, content=body)
            assert answer.status_code == (409 if "web2" in body.decode() else 400)
            assert words in answer.json()["error"]
        without = {"headers": {"Authorization": ""}}
        assert client.post("/agents/web1", content=b"{}", **without).status_code == 401
        assert client.get("/agents", **without).status_code == 401
