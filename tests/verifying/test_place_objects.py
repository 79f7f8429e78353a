"""Verifying a shared store finds every object that is damaged, missing or in the wrong place."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from stores.shared.shared_model import ModelDriver

from millstream.places.memory_place import MemoryPlace
from millstream.places.place import sealed
from millstream.stores.shared.commit_record import decode_commit, encode_commit
from millstream.verifying.findings import Findings
from millstream.verifying.place_objects import verify_place


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[ModelDriver]:
    """A store with changes, a base, a pack, and manifests."""
    with closing(ModelDriver(MemoryPlace(), tmp_path, 2, 2, patience=0.0)) as made:
        for number in range(6):
            changes = {0: {"f": {b"a": b"%d" % number}}, 1: {"f": {b"b": b"%d" % number}}}
            assert made.commit(made.attempted(0, changes), whole=number == 3)
        assert made.commit([], [made.base(0, 0)])
        assert made.commit([], [], made.pack(3))
        for number in range(2):
            assert made.commit(made.attempted(1, {0: {"f": {b"a": b"x%d" % number}}}))
        yield made


def looked(driver: ModelDriver) -> Findings:
    findings = Findings()
    verify_place(driver.place, findings)
    return findings


def test_all_is_well(driver: ModelDriver) -> None:
    """There are no findings in an undamaged store, and the checked objects are counted."""
    findings = looked(driver)
    assert findings.faults == []
    assert findings.looked["commits"] == 11
    assert findings.looked["parts of bases"] == 1
    assert findings.looked["frames"] > 3


def needed(driver: ModelDriver) -> list[str]:
    names = sorted(driver.state.manifest.names())
    return [*names, *(listed.name for listed in driver.place.list("commits/"))]


def test_every_damaged_byte_is_found(driver: ModelDriver) -> None:
    """Each object that is needed is named if one of its bytes is another."""
    for name in needed(driver):
        data = driver.place.get(name)
        assert data is not None
        for at in (0, len(data) // 2, len(data) - 1):
            wrong = bytearray(data)
            wrong[at] ^= 1
            driver.place.put(name, bytes(wrong))
            found = [finding.file for finding in looked(driver).faults]
            assert f"memory:/{name}" in found, (name, at)
        driver.place.put(name, data)
    assert looked(driver).faults == []


def test_what_is_missing_is_found(driver: ModelDriver) -> None:
    """Each object that the manifest needs is named if it is gone; so is a commit in the middle."""
    for name in [*driver.state.manifest.names(), "commits/000000000006"]:
        data = driver.place.get(name)
        assert data is not None
        driver.place.delete([name])
        assert f"memory:/{name}" in [finding.file for finding in looked(driver).faults]
        driver.place.put(name, data)


def test_objects_that_are_not_what_the_commits_say(driver: ModelDriver) -> None:
    """A commit that names other objects than its manifest, and objects of other batches than the
    commits say, do not fit."""
    name = "commits/000000000004"
    data = driver.place.get(name)
    assert data is not None
    commit = decode_commit(data[:-32])
    assert commit.manifest is not None
    commit.manifest.lineages[0] = (2, ("changes/other",))
    driver.place.put(name, sealed(name, encode_commit(commit)))
    assert any("does not follow" in finding.wrong for finding in looked(driver).faults)
    driver.place.put(name, data)

    newest = driver.state.manifest.segments[-1].name
    older = driver.state.manifest.segments[-2].name
    kept, other = driver.place.get(newest), driver.place.get(older)
    assert kept is not None
    assert other is not None
    driver.place.put(newest, sealed(newest, other[:-32]))
    assert any(finding.file.endswith(newest) for finding in looked(driver).faults)
    driver.place.put(newest, kept)
    assert looked(driver).faults == []


def test_no_store(tmp_path: Path) -> None:
    """An empty place is a finding."""
    findings = Findings()
    verify_place(MemoryPlace(), findings)
    assert [finding.wrong for finding in findings.faults] == ["no store is there"]
