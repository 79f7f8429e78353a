"""The sending half of an agent and a real Millstream server: they mean the same by every answer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from held_lock import hold
from server.served import MadeStore, served
from taking_root import entry, placed

import millstream as ms
from millstream.agent.delivery.bodies import LONGEST
from millstream.agent.delivery.outbox import Outbox, OutboxEntry
from millstream.agent.delivery.root_decisions import RootDecisions
from millstream.agent.delivery.sender import Sender
from millstream.agent.delivery.ways import LaidWays
from millstream.agent.delivery.wire import ServerWire
from millstream.description import describe, write_description
from millstream.errors import ClientError
from millstream.log.writer import Entry as LogEntry
from millstream.log.writer import LogWriter

TOKEN = "t" * 20
app = ms.App("counting")
app.source("counts.panes", key="tree")
app.output("counts.told")


@app.map("counts.panes", publishes="counts.told")
def tell(event: ms.Event) -> None: ...


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> MadeStore:
    """A store whose driver seems to be this test."""
    path = tmp_path_factory.mktemp("real") / "store"
    made = MadeStore(path, {}, app="counting")
    log = f"log:{made.home.log_of('counts.panes')}"
    write_description(path, describe(app.workflow(), {"counts.panes": log}))
    hold(path)
    told = [{"opened": 7}, {"closed": 6, "reducer": "1/0", "of": 1}]
    writer = LogWriter(made.home.log_of("counts.told"))
    lines = [msgspec.json.encode({"ts": 1, "key": "", "value": value}) for value in told]
    writer.append([LogEntry.of(lines)])
    writer.close()
    made.commit()
    return made


@pytest.fixture(scope="module")
def url(store: MadeStore) -> Iterator[str]:
    with served(store.path, token=TOKEN) as address:
        yield address


def sender(folder: Path, url: str, name: str = "", token: str = TOKEN) -> tuple[Outbox, Sender]:
    """An agent's sending half; its job is called `name`, if not "counts"."""
    job = placed("a")
    if name:
        job = type(job)(job.job, name, job.nodes)
    outbox = Outbox(folder, 1 << 30, print)
    ways = LaidWays(ServerWire(url, token))
    told = RootDecisions(ways, job, "a", print)
    root = ways.root
    return outbox, Sender(outbox, job, root=root, parent=lambda: None, decisions=told, say=print)


def records(url: str) -> list[Any]:
    asked = {"from": "start", "limit": 1000}
    headers = {"Authorization": f"Bearer {TOKEN}"}
    answer = httpx.get(f"{url}/streams/counts.panes/records", params=asked, headers=headers)
    return [one["value"] for one in answer.json()["records"]]


def test_what_is_sent_is_in_the_log_once(tmp_path: Path, url: str) -> None:
    """Groups of an outbox are records of the source, and a group that is sent again, since an
    answer was lost, is known by its key."""
    before = len(records(url))
    outbox, sending = sender(tmp_path / "outbox", url)
    outbox.put([entry("a", 1, x=1), entry("a", 2, 5)])
    outbox.put([entry("a", 5, x=2)])
    copies = [path.read_bytes() for path in sorted((tmp_path / "outbox").iterdir())]
    sending.step()
    assert outbox.groups() == []
    again = tmp_path / "again"
    again.mkdir()
    for number, data in enumerate(copies, 1):
        (again / f"{number:012}.panes").write_bytes(data)
    outbox, sending = sender(again, url)
    sending.step()
    assert outbox.groups() == []
    found = records(url)[before:]
    assert [(one["pane"], one["until"], one["partials"]) for one in found] == [
        (1, 2, {"x": 1}),
        (2, 5, {}),
        (5, 6, {"x": 2}),
    ]


@pytest.mark.parametrize(
    ("name", "token", "size", "words"),
    [
        ("visits", TOKEN, 1, "there is no stream 'visits.panes'"),
        ("counts", "o" * 20, 1, "set MILLSTREAM_TOKEN to its token"),
        ("counts", TOKEN, LONGEST + 1, "a line must not be longer than 8388608 bytes"),
    ],
)
def test_what_the_server_never_takes(
    tmp_path: Path, url: str, name: str, token: str, size: int, words: str
) -> None:
    """Another stream, a wrong token and a line that is too long are errors that say so."""
    outbox, sending = sender(tmp_path, url, name, token)
    line = b'{"tree":"a","text":"%s"}' % (b"x" * size)
    outbox.put([OutboxEntry("counts", "a", 1, 2, line, None)])
    with pytest.raises(ClientError, match=words):
        sending.step()
    assert len(outbox.groups()) == 1


def test_a_line_may_be_as_long_as_we_say(tmp_path: Path, url: str) -> None:
    """The longest that is ever sent is taken."""
    outbox, sending = sender(tmp_path, url)
    line = b'{"tree":"a","pane":9,"until":9,"partials":{},"text":"%s"}'
    line %= b"x" * (LONGEST - len(line) + 2)
    assert len(line) == LONGEST
    outbox.put([OutboxEntry("counts", "a", 9, 9, line, None)])
    sending.step()
    assert outbox.groups() == []


def test_what_is_told_is_heard(url: str) -> None:
    """The news that the server gives are what `RootDecisions` takes them for."""
    told = RootDecisions(LaidWays(ServerWire(url, TOKEN)), placed("a"), "a", print)
    assert told.poll()
    assert told.closed(6)
    assert told.opened(7) is not None


def test_it_is_there(url: str) -> None:
    """A server that asks for a token is there as well."""
    assert ServerWire(url).alive()
    assert not ServerWire("http://127.0.0.1:1").alive()
