"""`millstream agents`: the tree that a server has built, in columns."""

from __future__ import annotations

import json
import re
from pathlib import Path

import httpx
import msgspec
from click.testing import CliRunner
from jobs_store import JobStore
from served import served

from millstream.cli.main import main
from millstream.trees.messages import Hello, JobTicket, Member


def test_the_tree_in_columns(tmp_path: Path) -> None:
    """Each agent below its parent, with its address, its jobs and when it was heard of; or a JSON
    object a line; or that there is none."""
    made = JobStore(tmp_path / "store")
    with served(made.path, fan_out=1) as url:
        listed = CliRunner().invoke(main, ["agents", "--url", url])
        assert (listed.exit_code, listed.stdout, listed.stderr) == (0, "", "no agents\n")
        job = [JobTicket("errors", "")]
        for node, address in (("web1", "http://web1:8480"), ("web2", ""), ("web3", "")):
            member = Member(node, 1, url=address, capacity=8, version="0.1.0", jobs=job)
            body = msgspec.json.encode(Hello(member))
            assert httpx.post(f"{url}/agents/{node}", content=body).status_code == 200
        lines = CliRunner().invoke(main, ["agents", "--url", url]).stdout.splitlines()
        rows = CliRunner().invoke(main, ["agents", "--url", url, "--json"]).stdout.splitlines()
    shown = [re.sub(r"\d s ago", "N s ago", line.rstrip()) for line in lines[:3]]
    assert [re.split(r"\s{2,}", line) for line in shown] == [
        ["NODE", "PARENT", "ADDRESS", "JOBS", "HEARD", "VERSION"],
        ["web1 (2)", "(root)", "http://web1:8480", "errors", "N s ago", "0.1.0"],
        ["", "web2", "web1", "-", "errors", "N s ago", "0.1.0"],
    ]
    assert lines[-1] == "3 agents, 1 of them a parent, 2 deep"
    assert [json.loads(row)["parent"] for row in rows] == [None, "web1", "web1"]
