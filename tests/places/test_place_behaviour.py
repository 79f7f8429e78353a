"""The behaviour that all places share, for every service."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from millstream.errors import PlaceDamaged
from millstream.places.place import Place, created, read, sealed, unsealed

THREADS = 16
NAMES = [
    "latest",
    "commits/000000000007",
    "changes/000000000007/1-3-0a1b2c3d",
    "bases/0007/000000000100-ab12/00",
    "logs/some.stream_name-2/000000000000000042-17",
]


def names(place: Place, prefix: str, after: str = "") -> list[str]:
    return [listed.name for listed in place.list(prefix, after)]


@pytest.mark.parametrize("name", NAMES)
def test_an_object_is_what_was_put(place: Place, name: str) -> None:
    """Under every shape of name that a store uses; a second put replaces the first."""
    assert place.get(name) is None
    place.put(name, b"first")
    assert place.get(name) == b"first"
    place.put(name, b"")
    assert place.get(name) == b""
    assert names(place, name) == [name]


def test_a_name_is_created_once(place: Place) -> None:
    """A second create changes nothing; after a delete the name is free."""
    assert place.create("commits/1", b"one")
    assert not place.create("commits/1", b"two")
    assert place.get("commits/1") == b"one"
    place.delete(["commits/1"])
    assert place.create("commits/1", b"three")
    assert place.get("commits/1") == b"three"


def test_a_put_takes_a_name_too(place: Place) -> None:
    """A create of a name that was put is refused."""
    place.put("x", b"put")
    assert not place.create("x", b"created")
    assert place.get("x") == b"put"


@pytest.mark.parametrize(
    ("start", "end"),
    [(0, 3), (2, 5), (0, 10), (4, 100), (9, 10), (0, 0), (5, 5), (10, 12), (50, 60), (7, None)],
)
def test_a_range_is_a_part(place: Place, start: int, end: int | None) -> None:
    """As a slice: it ends with the object, and is empty behind it."""
    data = b"0123456789"
    place.put("parts/x", data)
    assert place.get("parts/x", start, end) == data[start:end]
    assert place.get("parts/y", start, end) is None


def test_a_list_is_in_order_of_names(place: Place) -> None:
    """By prefix, which may end within a part of a name, and from behind a name on."""
    given = ["a/1", "a/10", "a/2", "a/b/c", "ab/1", "b/000000000009", "b/000000000010", "c"]
    for name in reversed(given):
        place.put(name, name.encode())
    assert names(place, "") == sorted(given)
    assert names(place, "a/") == ["a/1", "a/10", "a/2", "a/b/c"]
    assert names(place, "a") == ["a/1", "a/10", "a/2", "a/b/c", "ab/1"]
    assert names(place, "a/1") == ["a/1", "a/10"]
    assert names(place, "a/", "a/10") == ["a/2", "a/b/c"]
    assert names(place, "a/", "a/15") == ["a/2", "a/b/c"]
    assert names(place, "b/", "b/000000000009") == ["b/000000000010"]
    assert names(place, "b/", "z") == names(place, "nothing/") == []


def test_a_list_says_sizes_and_times(place: Place) -> None:
    """Times are those of the place, for a sweep by age."""
    place.put("x/1", b"12345")
    place.put("x/2", b"")
    first, second = place.list("x/")
    assert (first.size, second.size) == (5, 0)
    assert 0 <= second.modified - first.modified < 60


def test_a_long_list_is_whole(place: Place) -> None:
    """More than a page of it, as services hand out."""
    given = [f"many/{number:05d}" for number in range(1_100)]
    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(lambda name: place.put(name, b"x"), given))
    assert names(place, "many/") == given
    assert names(place, "many/", "many/00999") == given[1_000:]


def test_a_delete_passes_over_what_is_not_there(place: Place) -> None:
    """And leaves everything else."""
    for name in ("x/1", "x/2", "x/3"):
        place.put(name, b"x")
    place.delete(["x/1", "x/none", "none", "x/3", "x/1"])
    place.delete([])
    assert names(place, "") == ["x/2"]


def test_one_of_many_threads_creates_a_name(opened: Callable[[], Place]) -> None:
    """If 16 threads create a name at the same time, exactly one succeeds, and its content stays."""
    clients = [opened() for _ in range(4)]
    with ThreadPoolExecutor(THREADS) as pool:
        for number in range(40):
            name = f"commits/{number:012d}"
            won = list(
                pool.map(
                    lambda who, name=name: clients[who % 4].create(name, f"by {who}".encode()),
                    range(THREADS),
                )
            )
            assert won.count(True) == 1
            assert clients[0].get(name) == f"by {won.index(True)}".encode()


def test_one_of_two_processes_creates_a_name(opened: Callable[[], Place], tmp_path: Path) -> None:
    """Two processes that race for a row of commits never both have one, and between them have all.

    A pickled place is opened anew in the other process.
    """
    place = opened()
    if place.address == "memory:":
        return  # it is of one process
    script = Path(__file__).with_name("creating_process.py")
    command = [sys.executable, str(script), place.address, "30"]
    racers = [
        subprocess.Popen([*command, name], stdout=subprocess.PIPE, env=os.environ.copy())
        for name in ("a", "b")
    ]
    told = {
        name: racer.communicate()[0].decode().split()
        for name, racer in zip("ab", racers, strict=True)
    }
    assert [racer.returncode for racer in racers] == [0, 0]
    assert sorted(told["a"] + told["b"]) == [f"{number:04d}" for number in range(30)]
    for name, numbers in told.items():
        for number in numbers:
            assert place.get(f"commits/{number}") == name.encode()


def test_a_sealed_object_is_read_back(place: Place) -> None:
    """If it is damaged, cut off or under another name, it is refused with its name and what to
    do."""
    name, content = "changes/1/x", b"content" * 100
    whole = sealed(name, content)
    place.put(name, whole)
    assert read(place, name) == content
    assert read(place, "changes/1/none") is None
    flipped = bytearray(whole)
    flipped[5] ^= 1
    for wrong in (bytes(flipped), whole[:-1], whole[:10], b"", whole + b"x"):
        place.put(name, wrong)
        with pytest.raises(
            PlaceDamaged, match=r"changes/1/x: .* bytes do not fit its checksum.*res"
        ):
            read(place, name)
    place.put("changes/1/y", whole)
    with pytest.raises(PlaceDamaged, match="changes/1/y"):
        read(place, "changes/1/y")
    assert unsealed(place, name, whole) == content


def test_created_knows_its_own(place: Place) -> None:
    """An earlier create of the same caller is distinguished from another's."""
    assert created(place, "commits/1", b"mine")
    assert created(place, "commits/1", b"mine")
    assert not created(place, "commits/1", b"another's")


def test_a_big_object_is_whole(place: Place) -> None:
    """Larger than one request of a put takes: it is written in parts, and read as one."""
    block = os.urandom(1 << 20)
    data = block * 70
    place.put("bases/0/x/00", data)
    assert place.get("bases/0/x/00") == data
    assert place.get("bases/0/x/00", 40 << 20, (40 << 20) + 1_000) == block[:1_000]
    (listed,) = place.list("bases/0/x/")
    assert listed.size == len(data)
    # A service may refuse before it has read all of it, and hang up: `created` finds out.
    assert not created(place, "bases/0/x/00", data[: 40 << 20])
    assert place.create("bases/0/x/01", data[: 40 << 20])
    assert place.get("bases/0/x/01") == data[: 40 << 20]
