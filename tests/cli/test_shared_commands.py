"""The commands that read a store, on a shared one: from anywhere, while the application runs or
not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import Result
from server.served import until
from server.shared_shop import RunningShop, add, run_once


@pytest.fixture
def shop(here: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of a store that a run has left, with five check-ins."""
    monkeypatch.setenv("MILLSTREAM_CACHE", str(here / "readers"))
    add(here, "a", "Walmart", "Walmart", "Target", "Kmart", "Fail")
    run_once(here)
    return f"shared:{here / 'place'}"


def lines(result: Result) -> list[str]:
    assert result.exit_code == 0, result.output
    return result.stdout.splitlines()


def test_slates(millstream, shop: str, here: Path) -> None:
    """Slates are got, scanned and dumped, and a new batch is seen by the next command."""
    assert lines(millstream("slates", "get", "count", "Walmart", "--store", shop)) == ['{"n":2}']
    scanned = lines(millstream("slates", "scan", "count", "--store", shop))
    assert [json.loads(line)["key"] for line in scanned] == ["Fail", "Kmart", "Target", "Walmart"]
    to = f"jsonl:{here / 'dump.jsonl'}"
    lines(millstream("slates", "dump", "count", "--to", to, "--store", shop))
    assert len((here / "dump.jsonl").read_text().splitlines()) == 4
    add(here, "b", "Walmart")
    run_once(here)
    assert lines(millstream("slates", "get", "count", "Walmart", "--store", shop)) == ['{"n":3}']
    missing = millstream("slates", "get", "count", "nobody", "--store", shop)
    assert missing.exit_code == 1


def test_while_it_runs(millstream, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each command brings its mirror up to the last commit."""
    monkeypatch.setenv("MILLSTREAM_CACHE", str(here / "readers"))
    monkeypatch.setenv("MILLSTREAM_STORE", f"shared:{here / 'place'}")
    add(here, "a", "Walmart")
    with RunningShop(here):
        until(lambda: millstream("slates", "get", "count", "Walmart").stdout == '{"n":1}\n')
        add(here, "b", "Walmart")
        until(lambda: millstream("slates", "get", "count", "Walmart").stdout == '{"n":2}\n')
        assert "all is well" in lines(millstream("verify"))[-1]


def test_other_readers(millstream, shop: str) -> None:
    """Dead letters, jobs and actions are read from a mirror."""
    assert millstream("deadletters", "--store", shop).exit_code == 0
    assert millstream("jobs", "--store", shop).exit_code == 0
    assert millstream("actions", "--store", shop).exit_code == 0


def test_verify(millstream, shop: str, here: Path) -> None:
    """Every object is looked at, and then the rows; a damaged object is named."""
    said = lines(millstream("verify", "--store", shop))
    assert "all is well" in said[-1]
    assert "commits" in said[-1]
    assert "shards" in said[-1]
    changes = next((here / "place" / "changes").rglob("*-*-*"))
    data = bytearray(changes.read_bytes())
    data[len(data) // 2] ^= 1
    changes.write_bytes(data)
    wrong = millstream("verify", "--store", shop)
    assert wrong.exit_code == 1
    assert str(changes.relative_to(here / "place")) in wrong.stdout
    assert "do not fit its checksum" in wrong.stdout


def test_vacuum(millstream, shop: str, here: Path) -> None:
    """Objects that no commit names are removed. With --dry-run they are only listed."""
    left = here / "place" / "changes" / "000000000000" / "1-1-left"
    left.parent.mkdir(exist_ok=True)
    left.write_bytes(b"of a task that died")
    kept = lines(millstream("vacuum", "--store", shop))
    assert kept[-1].startswith("0 objects deleted")
    said = lines(millstream("vacuum", "--store", shop, "--older-than", "0s", "--dry-run"))
    assert said == ["changes/000000000000/1-1-left"]
    assert left.exists()
    went = lines(millstream("vacuum", "--store", shop, "--older-than", "0s"))
    assert went[-1].startswith("1 object deleted (1 changes)")
    assert not left.exists()
    assert "all is well" in lines(millstream("verify", "--store", shop))[-1]


def test_options_that_are_for_others(millstream, shop: str, here: Path) -> None:
    """Options of shared stores are refused for folders, and a place without a store is named."""
    (here / "folder").mkdir()
    refused = millstream("vacuum", "--store", "folder", "--dry-run")
    assert refused.exit_code != 0
    assert "are for a shared store" in refused.output
    empty = millstream("slates", "get", "count", "a", "--store", f"shared:{here / 'nothing'}")
    assert empty.exit_code != 0
    assert "no store is there; run the application first" in empty.output
    serve = millstream("serve", "--store", "folder", "--shards", "0-3")
    assert serve.exit_code != 0
    assert "--shards is for a shared store" in serve.output
    for wrong in ("a", "3-1", "1,,2"):
        serve = millstream("serve", "--store", shop, "--shards", wrong)
        assert "--shards must be as in 0-15" in serve.output
