"""What only the embedded store can show: real processes, killed, hung, forked, and full disks.

Children are real processes that run a few lines and speak over their standard input and output,
one line at a time: no test waits for the clock.
"""

from __future__ import annotations

import os
import pickle
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import lmdb
import pytest

import millstream.stores
from millstream.errors import StaleCommit, StoreError
from millstream.stores.contract import Fence, Shard
from millstream.stores.lmdb import LmdbStore

pytestmark = pytest.mark.timeout(60)

PRELUDE = """
import os, signal, sys
from millstream.errors import StaleCommit, StoreError
from millstream.stores import lmdb as backend
from millstream.stores.contract import Fence
from millstream.stores.lmdb import LmdbStore
store = LmdbStore(sys.argv[1], 1, map_size=int(sys.argv[2]))
shard = store.shard(0)
def say(word): print(word, flush=True)
def hear(): return sys.stdin.readline().strip()
"""

Child = Callable[[str], subprocess.Popen[str]]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LmdbStore]:
    """An empty store of one shard, small enough to be outgrown."""
    opened = LmdbStore(tmp_path / "store", 1, map_size=1 << 20)
    yield opened
    opened.close()


@pytest.fixture
def shard(store: LmdbStore) -> Shard:
    """Its shard."""
    return store.shard(0)


@pytest.fixture
def child(tmp_path: Path) -> Iterator[Child]:
    """Starts a process that has opened `store` and runs the code given."""
    started: list[subprocess.Popen[str]] = []
    source = Path(millstream.stores.__file__).parents[2]

    def start(code: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", PRELUDE + code, str(tmp_path / "store"), str(1 << 20)],
            env={**os.environ, "PYTHONPATH": str(source)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def hear(process: subprocess.Popen[str]) -> str:
    """The next line that a child says."""
    assert process.stdout
    return process.stdout.readline().strip()


def tell(process: subprocess.Popen[str], word: str) -> None:
    """Let a child go on."""
    assert process.stdin
    process.stdin.write(word + "\n")
    process.stdin.flush()


def values(shard: Shard, at: int) -> dict[bytes, bytes]:
    """Every row as of batch `at`."""
    with shard.at(at) as view:
        return dict(view.scan(b""))


def pages(tmp_path: Path) -> int:
    """How many pages the shard's file has."""
    return (tmp_path / "store" / "shard-0000" / "data.mdb").stat().st_size // 4096


def test_what_is_committed_is_there_after_reopening(store: LmdbStore, child: Child) -> None:
    """Another process finds rows, fence and memory of the batch before."""
    store.shard(0).commit(Fence(1, 0, 0), {"f": {b"a": b"0"}})
    store.shard(0).commit(Fence(1, 1, 5), {"f": {b"a": b"1"}})
    store.close()
    process = child("""
with shard.at(0) as view: say(view.get_many([b"a"]))
try: shard.commit(Fence(1, 1, 4), {"f": {b"a": b"stale"}})
except StaleCommit: say("refused")
""")
    assert hear(process) == "[b'0']"
    assert hear(process) == "refused"


def test_a_process_killed_before_the_end_of_a_commit(shard: Shard, child: Child) -> None:
    """Killed with every row put and nothing flushed: nothing is seen, and the store goes on."""
    before = {b"%d" % i: b"0" for i in range(1000)}
    shard.commit(Fence(1, 0, 0), {"f": before})
    process = child("""
original = backend._replace
def replace_and_die(*arguments):
    original(*arguments)
    os.kill(os.getpid(), signal.SIGKILL)
backend._replace = replace_and_die
shard.commit(Fence(1, 1, 1), {"f": {b"%d" % i: b"1" for i in range(500)}})
""")
    assert process.wait() == -9
    assert values(shard, 0) == values(shard, 1) == before
    shard.commit(Fence(1, 1, 2), {"f": {b"new": b"1"}})
    assert values(shard, 1) == {**before, b"new": b"1"}


def test_a_process_killed_at_any_moment(shard: Shard, child: Child) -> None:
    """Killed anywhere in a row of commits, a batch is there whole or not at all, none is lost."""
    seed = random.Random(7)
    last = -1
    for epoch in range(1, 9):
        process = child(f"""
for batch in range({last + 1}, 1000000):
    changes = {{b"%d" % i: b"%d" % batch for i in range(300)}}
    shard.commit(Fence({epoch}, batch, 0), {{"f": changes}})
    say(batch)
""")
        said = last
        for _ in range(seed.randrange(1, 40)):
            said = int(hear(process))
        process.kill()
        assert process.stdout is not None
        rest = process.stdout.read()  # not communicate(), which misses what is already buffered
        process.wait()
        said = int([str(said), *rest.split()][-1])
        found = set(values(shard, said + 1).values())
        assert found in ({b"%d" % said}, {b"%d" % (said + 1)})
        shard.roll_back(epoch + 1, said)
        assert set(values(shard, said).values()) == {b"%d" % said}
        last = said


def test_two_processes_commit_a_batch_at_once(shard: Shard, child: Child) -> None:
    """However they interleave, the rows of the higher attempt remain, and of it alone."""
    racer = """
attempt = int(hear())
while line := hear():
    batch = int(line)
    rows = {b"%d" % i: b"%d:%d" % (batch, attempt) for i in range(attempt * 100, attempt * 150)}
    try: shard.commit(Fence(1, batch, attempt), {"f": rows})
    except StaleCommit: say("refused")
    else: say("done")
"""
    racers = [child(racer), child(racer)]
    for attempt, process in enumerate(racers, 1):
        tell(process, str(attempt))
    for batch in range(40):
        for process in racers if batch % 2 else racers[::-1]:
            tell(process, str(batch))
        first, second = hear(racers[0]), hear(racers[1])
        assert first in ("done", "refused")
        assert second == "done"
        now = {k: v for k, v in values(shard, batch).items() if v.startswith(b"%d:" % batch)}
        assert now == {b"%d" % i: b"%d:2" % batch for i in range(200, 300)}


def test_an_empty_commit_is_seen_by_other_processes(shard: Shard, child: Child) -> None:
    """The fence of a commit that wrote nothing refuses an older attempt in another process."""
    shard.commit(Fence(1, 0, 2), {"f": {}})
    process = child("""
try: shard.commit(Fence(1, 0, 1), {"f": {b"a": b"half"}})
except StaleCommit as error: say(error)
""")
    assert "(epoch 1, batch 0, attempt 2)" in hear(process)


def test_an_empty_commit_writes_nothing(store: LmdbStore, tmp_path: Path) -> None:
    """A commit with nothing to change and nothing to undo makes no transaction."""

    def transactions() -> int:
        store.close()
        with lmdb.open(str(tmp_path / "store" / "shard-0000")) as env:
            return env.info()["last_txnid"]

    store.shard(0).commit(Fence(1, 0, 0), {"f": {b"a": b"0"}})
    before = transactions()
    store.shard(0).commit(Fence(1, 1, 0), {"f": {}, "g": {b"not there": None}})
    store.shard(0).commit(Fence(1, 2, 0), {})
    assert transactions() == before


def test_tombstones_are_removed(store: LmdbStore, tmp_path: Path) -> None:
    """A deleted row takes room until the function's next commit, and not after."""

    def entries() -> int:
        store.close()
        with lmdb.open(str(tmp_path / "store" / "shard-0000")) as env:
            return env.stat()["entries"]

    store.shard(0).commit(Fence(1, 0, 0), {"f": {b"%d" % i: b"0" for i in range(100)}})
    full = entries()
    store.shard(0).commit(Fence(1, 1, 0), {"f": {b"%d" % i: None for i in range(90)}})
    assert entries() == full
    store.shard(0).commit(Fence(1, 2, 0), {"f": {b"0": b"again"}})
    assert entries() == full - 89


def test_a_reader_that_hangs_does_not_block_commits(
    shard: Shard, child: Child, tmp_path: Path
) -> None:
    """A live reader keeps its moment while commits go on; once dead, the file stops growing."""
    shard.commit(Fence(1, 0, 0), {"f": {b"a": b"0" * 30_000}})
    process = child("""
with shard.at(0) as view:
    say("reading")
    hear()
    say(view.get_many([b"a"])[0][:3])
    say("hung")
    hear()
""")
    assert hear(process) == "reading"
    batch = 0

    def commit(times: int) -> None:
        nonlocal batch
        for _ in range(times):
            batch += 1
            shard.commit(Fence(1, batch, 0), {"f": {b"a": b"%d" % (batch % 10) * 30_000}})

    commit(20)
    held = pages(tmp_path)
    commit(20)
    assert pages(tmp_path) > held + 100, "the reader held nothing: the test shows nothing"
    tell(process, "read")
    assert hear(process) == "b'000'"
    assert hear(process) == "hung"
    process.kill()
    process.wait()
    commit(5)
    cleared = pages(tmp_path)
    commit(100)
    assert pages(tmp_path) == cleared


def test_growing_past_the_first_size(shard: Shard, child: Child) -> None:
    """A full map is doubled under the commit; readers and writers elsewhere follow."""
    shard.commit(Fence(1, 0, 0), {"f": {b"a": b"0"}})
    process = child("""
with shard.at(0) as view: say(view.get_many([b"a"]))
hear()
with shard.at(1) as view: say(sum(len(value) for _, value in view.scan(b"")))
hear()
shard.commit(Fence(1, 3, 1), {"f": {b"a": b"3"}})
say("committed")
""")
    assert hear(process) == "[b'0']"
    big = {b"%d" % i: bytes([i]) * (1 << 20) for i in range(20)}
    shard.commit(Fence(1, 1, 0), {"f": big})
    assert values(shard, 1) == {**big, b"a": b"0"}
    tell(process, "read")
    assert hear(process) == str((20 << 20) + 1)
    shard.commit(Fence(1, 2, 0), {"f": {b"more": b"m" * (40 << 20)}})
    tell(process, "commit")
    assert hear(process) == "committed"
    with shard.at(3) as view:
        assert view.get_many([b"a", b"19"]) == [b"3", big[b"19"]]


def test_a_view_that_growth_closed_says_so(shard: Shard) -> None:
    """A view open in the process that grows the map raises StoreError, and can be opened again."""
    shard.commit(Fence(1, 0, 0), {"f": {b"a": b"0"}})
    with shard.at(0) as view:
        rows = view.scan(b"")
        next(rows)
        shard.commit(Fence(1, 1, 0), {"f": {b"b": b"b" * (5 << 20)}})
        with pytest.raises(StoreError, match="open it again"):
            view.get_many([b"a"])
        with pytest.raises(StoreError, match="open it again"):
            next(rows)
    with shard.at(0) as view:
        assert view.get_many([b"a"]) == [b"0"]


def test_a_full_disk(child: Child, tmp_path: Path) -> None:
    """A file that cannot be longer is a StoreError that says where and what to do."""
    process = child("""
import resource
shard.commit(Fence(1, 0, 0), {"f": {b"a": b"0"}})
big = {b"%d" % i: b"x" * (1 << 20) for i in range(20)}
resource.setrlimit(resource.RLIMIT_FSIZE, (4 << 20, resource.RLIM_INFINITY))
try: shard.commit(Fence(1, 1, 0), {"f": {b"a": b"1", **big}})
except StoreError as error: say(error)
with shard.at(1) as view: say(list(view.scan(b"")))
shard.commit(Fence(1, 1, 1), {"f": {b"a": b"small"}})
with shard.at(1) as view: say(list(view.scan(b"")))
""")
    message = hear(process)
    assert message.startswith(f"shard 0 of the store {tmp_path / 'store'}: nothing was committed")
    assert "make room" in message
    assert hear(process) == "[(b'a', b'0')]"
    assert hear(process) == "[(b'a', b'small')]"


def test_a_map_that_cannot_grow(child: Child) -> None:
    """Out of address space, a commit is refused with advice, and the store goes on as it was."""
    process = child("""
import itertools, resource
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (48 << 20), resource.RLIM_INFINITY))
try:
    for batch in itertools.count():
        shard.commit(Fence(1, batch, 0), {"f": {b"%d" % batch: b"x" * (1 << 20)}})
except StoreError as error:
    say(error)
with shard.at(batch) as view: say(sum(1 for _ in view.scan(b"")) - batch)
shard.commit(Fence(1, batch, 1), {"f": {b"a": b"small"}})
with shard.at(batch) as view: say(view.get_many([b"a"]))
""")
    assert "more address space" in hear(process)
    assert hear(process) == "0"
    assert hear(process) == "[b'small']"


def test_a_commit_that_fails_half_way_changes_nothing(shard: Shard) -> None:
    """When the second function's value is no bytes, the first function's rows are not there."""
    shard.commit(Fence(1, 0, 0), {"f": {b"a": b"0"}})
    bad: dict[bytes, bytes | None] = {b"b": "text"}  # type: ignore[dict-item]  # the point
    with pytest.raises(TypeError):
        shard.commit(Fence(1, 1, 0), {"f": {b"a": b"1"}, "g": bad})
    assert values(shard, 1) == {b"a": b"0"}
    shard.commit(Fence(1, 1, 0), {"f": {b"a": b"1"}})
    assert values(shard, 1) == {b"a": b"1"}


def test_a_forked_child_opens_its_own(child: Child) -> None:
    """A store used before a fork works in parent and child, which do not disturb each other."""
    process = child("""
shard.commit(Fence(1, 0, 0), {"f": {b"a": b"0"}})
forked = os.fork()
if not forked:
    shard.commit(Fence(1, 1, 0), {"f": {b"a": b"child"}})
    with shard.at(1) as view: say(view.get_many([b"a"]))
    store.close()
    os._exit(0)
os.waitpid(forked, 0)
shard.commit(Fence(1, 2, 0), {"f": {b"b": b"parent"}})
with shard.at(2) as view: say(view.get_many([b"a", b"b"]))
""")
    assert hear(process) == "[b'child']"
    assert hear(process) == "[b'child', b'parent']"


def test_a_forked_child_is_a_reader_of_its_own(shard: Shard, child: Child) -> None:
    """When the parent of a fork dies, its child's view still holds the pages that it shows."""
    shard.commit(Fence(1, 0, 0), {"f": {b"%d" % i: b"0" * 100 for i in range(200)}})
    process = child("""
with shard.at(0) as view: view.get_many([b"0"])
if os.fork(): os._exit(0)
with shard.at(0) as view:
    say("reading")
    hear()
    say({value for _, value in view.scan(b"")} == {b"0" * 100})
""")
    assert hear(process) == "reading"
    process.wait()
    for batch in range(1, 20):
        rows = {b"%d" % i: b"%d" % (batch % 10) * 100 for i in range(200)}
        shard.commit(Fence(1, batch, 0), {"f": rows})
    tell(process, "read")
    assert hear(process) == "True"


def test_stores_of_a_process_share_an_environment(store: LmdbStore) -> None:
    """A store that was pickled, as Spark does for each task, works beside the first."""
    store.shard(0).commit(Fence(1, 0, 0), {"f": {b"a": b"0"}})
    for batch in range(1, 4):
        copy: LmdbStore = pickle.loads(pickle.dumps(store))
        copy.shard(0).commit(Fence(1, batch, 0), {"f": {b"a": b"%d" % batch}})
        assert values(store.shard(0), batch) == {b"a": b"%d" % batch}
        copy.close()
    assert values(store.shard(0), 3) == {b"a": b"3"}


def test_a_folder_that_was_deleted_is_made_anew(store: LmdbStore, tmp_path: Path) -> None:
    """A store opened where one was deleted is empty, though the old one is still open."""
    store.shard(0).commit(Fence(5, 9, 0), {"f": {b"a": b"0"}})
    shutil.rmtree(tmp_path / "store")
    fresh = LmdbStore(tmp_path / "store", 1)
    fresh.shard(0).commit(Fence(1, 0, 0), {"f": {b"b": b"0"}})
    assert values(fresh.shard(0), 0) == {b"b": b"0"}
    fresh.close()


def test_a_file_that_is_not_a_store(tmp_path: Path) -> None:
    """A damaged file is a StoreError that names the shard and the store."""
    folder = tmp_path / "store" / "shard-0000"
    folder.mkdir(parents=True)
    (folder / "data.mdb").write_bytes(b"no database" * 1000)
    with pytest.raises(StoreError, match=r"shard 0 of the store .*store"):
        LmdbStore(tmp_path / "store", 1).shard(0).at(0)


def test_a_stale_commit_names_the_shard(shard: Shard, tmp_path: Path) -> None:
    """The refusal says which shard of which store."""
    shard.commit(Fence(2, 0, 0), {"f": {b"a": b"0"}})
    with pytest.raises(StaleCommit, match=f"shard 0 of the store {tmp_path / 'store'}"):
        shard.commit(Fence(1, 0, 0), {"f": {}})
