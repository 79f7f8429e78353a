"""`millstream feeds`, from a store and with a server."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from feeds.stored_feeds import FeedStore
from server.served import served

from millstream.codec import encode_value, shard_of
from millstream.feeds.names import item_entry
from millstream.stores.contract import Fence
from millstream.stores.home import Home
from millstream.stores.layout import table_of

START = 1_700_000_000_000_000
Command = Callable[..., Result]


@pytest.fixture
def stored(here: Path) -> FeedStore:
    """Nine consumers, who follow ann, bob and cid; all of them are on push."""
    stored = FeedStore(here / ".millstream" / "social", policy="push")
    pairs = [(f"x{n}", producer) for n in range(9) for producer in ("ann", "bob", "cid")]
    follows = [
        {"kind": "follow", "consumer": consumer, "producer": producer, "at": START + n}
        for n, (consumer, producer) in enumerate(pairs)
    ]
    posts = [
        {
            "kind": "post",
            "producer": ("ann", "bob", "cid")[n % 3],
            "id": f"p{n}",
            "value": {"n": n},
            "at": START + 1_000_000 * (n + 1),
        }
        for n in range(30)
    ]
    for records in (follows, posts):
        stored.append(*records)
        stored.batch()
    stored.settle()
    return stored


def damage(stored: FeedStore, consumer: str, entry: str, value: object) -> None:
    """Change an entry behind the application's back, in a batch of its own."""
    home = Home.open(stored.path)
    update, progress = stored.placed.consumers, stored.engine.progress
    progress.batch += 1
    store = home.store()
    row = table_of(update, consumer) + entry.encode()
    of = shard_of(update, consumer, home.facts.shards)
    changes = {update: {row: None if value is None else encode_value(value)}}
    for number in range(home.facts.shards):
        fence = Fence(stored.engine.epoch, progress.batch, 0)
        store.shard(number).commit(fence, changes if number == of else {})
    store.close()
    home.write_progress(progress)


def test_feeds_that_are_right(stored: FeedStore, millstream: Command) -> None:
    """Exit 0, and one line that says what was looked at."""
    done = millstream("feeds", "verify", "--all")
    assert (done.exit_code, done.stdout) == (
        0,
        f"looked at the feeds of 9 consumers as of batch {stored.engine.progress.batch}; "
        "27 pairs, 270 posts; all is well\n",
    )


def test_a_sample(stored: FeedStore, millstream: Command) -> None:
    """The sample has the given number of consumers, and another seed gives other ones. With --all
    there is no sample."""
    done = millstream("feeds", "verify", "--sample", "4", "--store", str(stored.path))
    assert done.stdout.startswith("looked at the feeds of 4 consumers")
    damage(stored, "x3", item_entry(START + 1_000_000, "ann", "p0"), None)
    codes = {
        millstream("feeds", "verify", "--sample", "1", "--seed", str(seed)).exit_code
        for seed in range(20)
    }
    assert codes == {0, 1}
    assert millstream("feeds", "verify", "--sample", "1", "--all").exit_code == 2


def test_an_item_that_is_missing(stored: FeedStore, millstream: Command) -> None:
    """Exit 1, a line for each difference, and a summary; with --json, records and no other line."""
    damage(stored, "x3", item_entry(START + 4_000_000, "ann", "p3"), None)
    done = millstream("feeds", "verify", "--all")
    assert done.exit_code == 1
    *lines, last = done.stdout.splitlines()
    assert lines[0] == (
        "consumer 'x3', producer 'ann', post 'p3': the feed, from the newest: "
        f"must be {{'n': 3}}, of {START + 4_000_000}; got nothing"
    )
    assert len(lines) == 4
    assert last.endswith("4 differences in 1 feed")
    as_json = millstream("feeds", "verify", "--all", "--json")
    assert as_json.exit_code == 1
    records = [json.loads(line) for line in as_json.stdout.splitlines()]
    assert [one["post"] for one in records] == ["p3", "p3", "p3", None]
    assert records[2]["where"] == "the consumer's table"


def test_many_differences_of_one_consumer(stored: FeedStore, millstream: Command) -> None:
    """The first are told, the others counted."""
    damage(stored, "x3", "push\x1fann", None)
    damage(stored, "x3", "push\x1fbob", None)
    lines = millstream("feeds", "verify", "--all").stdout.splitlines()
    assert lines[20] == "consumer 'x3': ... and 41 more differences"
    assert len(lines) == 22


def test_while_events_are_on_their_way(stored: FeedStore, millstream: Command) -> None:
    """Messages to producers that are due in the next batch do not count as differences. The command
    says so."""
    stored.append({"kind": "follow", "consumer": "new", "producer": "ann", "at": START + 10**9})
    stored.batch()
    assert stored.engine.progress.pending.feedback == 1
    done = millstream("feeds", "verify", "--all")
    assert done.exit_code == 0
    assert "the producers' side of 10 consumers was not checked" in done.stdout


def test_a_feed_of_a_store(stored: FeedStore, millstream: Command) -> None:
    """Newest first, a line an item."""
    done = millstream("feeds", "show", "x1", "--limit", "2")
    assert done.stdout == (
        '2023-11-14T22:13:50Z  cid  p29  push  {"n":29}\n'
        '2023-11-14T22:13:49Z  bob  p28  push  {"n":28}\n'
    )
    page = json.loads(millstream("feeds", "show", "x1", "--json").stdout)
    assert (len(page["items"]), page["complete"], page["feeds"]) == (20, True, "feeds")
    older = millstream("feeds", "show", "x1", "--limit", "1", "--cursor", page["next"], "--why")
    assert older.stdout.startswith('2023-11-14T22:13:30Z  ann  p9  push  {"side":"push"')
    wrong = millstream("feeds", "show", "x1", "--cursor", "x")
    assert wrong.exit_code == 1
    assert "cursor must be the 'next' or 'previous' of an answer" in wrong.stderr


def test_which_feeds(stored: FeedStore, millstream: Command, tmp_path: Path) -> None:
    """The nearest name is told; a store without feeds says that it has none."""
    wrong = millstream("feeds", "verify", "--feeds", "feed")
    assert wrong.exit_code == 2
    assert "there are no feeds 'feed'; did you mean 'feeds'" in wrong.stderr
    Home.make(tmp_path / "other", "other", 1, {"count": "dict"})
    none = millstream("feeds", "verify", "--store", str(tmp_path / "other"))
    assert none.exit_code == 2
    assert "the application has no feeds" in none.stderr


def test_feeds_of_a_server(stored: FeedStore, millstream: Command) -> None:
    """The answers of a server are compared too, if no change of the feeds is pending. The
    comparison changes nothing."""
    with served(stored.path) as url:
        words = ("feeds", "verify", "--all", "--store", str(stored.path), "--url", url)
        done = millstream(*words)
        assert (done.exit_code, done.stderr) == (0, "")
        assert "; 9 feeds over HTTP (0 skipped); all is well\n" in done.stdout
        damage(stored, "x3", item_entry(START + 4_000_000, "ann", "p3"), None)
        broken = millstream(*words)
        assert broken.exit_code == 1
        assert "'p3': the feed, over HTTP: must be {'n': 3}" in broken.stdout
        assert millstream("feeds", "post", "ann", "hello", "--url", url).exit_code == 0
        assert "; 0 feeds over HTTP (9 skipped); " in millstream(*words).stdout


def test_doing_things(stored: FeedStore, millstream: Command) -> None:
    """Each command does one thing, and says so; the next look shows it."""
    with served(stored.path) as url:

        def feeds(*words: str) -> str:
            done = millstream("feeds", *words, "--url", url)
            assert done.exit_code == 0, done.output
            return done.stdout

        assert feeds("follow", "xena", "ann") == "xena follows ann\n"
        made = feeds("post", "ann", "hello").strip()
        assert feeds("post", "ann", '{"n": 1}', "--id", "mine") == "mine\n"
        first, second, *_ = feeds("show", "xena").splitlines()
        assert first.endswith('  ann  mine  pending  {"n":1}')
        assert second.endswith(f'  ann  {made}  pending  "hello"')
        assert feeds("delete", "ann", "mine") == "ann: mine is deleted\n"
        assert len(feeds("show", "xena", "--limit", "500").splitlines()) == 11
        assert feeds("block", "xena", "ann") == "xena blocks ann\n"
        assert feeds("show", "xena") == ""
        refused = millstream("feeds", "follow", "xena", "ann", "--url", url)
        assert (refused.exit_code, "has blocked" in refused.stderr) == (1, True)
        assert feeds("block", "xena", "ann", "--undo") == "xena does not block ann\n"
        assert feeds("unfollow", "x1", "ann") == "x1 does not follow ann\n"
        assert "ann" not in feeds("show", "x1")
        line = "feeds: global coherency: 3 producers, 9 consumers, 27 pairs, 27 pushed, 0 pulled; "
        said = feeds("network")
        assert said.startswith(line)
        assert said.endswith("ratio 1\n")
        assert json.loads(feeds("network", "--json"))["feeds"]["policy"] == "push"


def test_a_server_that_cannot_be_compared(stored: FeedStore, millstream: Command) -> None:
    """A server that does not answer is an error. If everything is skipped because a record is
    pending, the command says so, and does not succeed."""
    gone = millstream("feeds", "verify", "--store", str(stored.path), "--url", "http://127.0.0.1:9")
    assert gone.exit_code != 0
    assert "all is well" not in gone.output
    with served(stored.path) as url:
        millstream("feeds", "post", "ann", "pending", "--url", url)
        done = millstream("feeds", "verify", "--store", str(stored.path), "--url", url)
    assert done.exit_code == 1
    assert "nothing was compared over HTTP" in done.output
