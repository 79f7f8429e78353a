"""Tests of the embedded store alone: real processes that are killed, race and fork."""

from __future__ import annotations

import pickle
import random

import pytest
from stores.embedded.store_child import Child, hear, tell, values

from millstream.stores.contract import Fence, Shard
from millstream.stores.lmdb import LmdbStore

pytestmark = pytest.mark.timeout(60)


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
original = backend.replace_rows
def replace_and_die(*arguments):
    original(*arguments)
    os.kill(os.getpid(), signal.SIGKILL)
backend.replace_rows = replace_and_die
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
    """However they interleave, only the rows of the higher attempt remain."""
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
