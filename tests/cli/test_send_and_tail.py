"""`millstream send`, `tail` and `slates --url` against a real server."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner
from client.live_server import OUTPUTS, LiveServer

from millstream.cli.main import main
from millstream.cli.which_server import chosen_url
from millstream.server.lock import ServerLock

SOURCE = Path(__file__).parents[2] / "src"
UNUSED = iter(OUTPUTS)


@pytest.fixture(scope="module")
def live(tmp_path_factory):
    with LiveServer(tmp_path_factory.mktemp("live") / "store") as server:
        server.made.commit({"count": {"Walmart": {"count": 2}, "a/b": {"count": 1}}})
        yield server.start()


@pytest.fixture
def command(here, live, monkeypatch):
    """Call the command with these words, and this on stdin; MILLSTREAM_URL names the server."""
    monkeypatch.setenv("MILLSTREAM_URL", live.url)
    monkeypatch.delenv("MILLSTREAM_TOKEN", raising=False)

    def call(*words, input=None):
        result = CliRunner().invoke(main, [*words], input=input)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.output
        return result

    return call


def started(*words, url, **options):
    """The command in a process of its own."""
    environ = {**os.environ, "PYTHONPATH": str(SOURCE), "MILLSTREAM_URL": url}
    return subprocess.Popen(
        [sys.executable, "-m", "millstream.cli.main", *words],
        env=environ,
        stdout=subprocess.PIPE,
        text=True,
        **{"stderr": subprocess.PIPE, **options},
    )


def venues(live):
    return [record["venue"] for record in live.records("checkins")]


def test_send_files(command, live, here):
    """Files are sent line by line; their blank lines are nothing."""
    (here / "a.jsonl").write_text('{"venue": "a1"}\n\n{"venue": "a2"}')
    (here / "b.jsonl").write_bytes(b'{"venue": "b1"}\r\n')
    (here / "many.jsonl").write_text("".join(f'{{"venue": "m{n}"}}\n' for n in range(1200)))
    result = command("send", "checkins", "a.jsonl", "b.jsonl", "many.jsonl")
    assert (result.exit_code, result.stdout, result.stderr) == (
        0, "accepted 1,203, refused 0\n", "",
    )  # fmt: skip
    assert venues(live)[-1203:] == ["a1", "a2", "b1", *(f"m{n}" for n in range(1200))]


def test_send_from_stdin_or_the_command_line(command, live):
    """Without files stdin is sent. --event sends its value in any layout."""
    result = command("send", "checkins", input='{"venue": "s1"}\n{"venue": "s2"}')
    assert (result.exit_code, result.stdout) == (0, "accepted 2, refused 0\n")
    result = command(
        "send", "checkins", "--event", '{"venue":\n "e1"}', "--event", '{"venue":"e2"}'
    )
    assert (result.exit_code, result.stdout) == (0, "accepted 2, refused 0\n")
    assert venues(live)[-4:] == ["s1", "s2", "e1", "e2"]


def test_refused_lines_are_shown(command, live, here):
    """Each refused line is on stderr, with its place and the reason, and the exit code is 1."""
    (here / "bad.jsonl").write_text('{"venue": "ok"}\n\n{"n": 1}\n{"venue"\n')
    result = command("send", "checkins", "bad.jsonl")
    assert (result.exit_code, result.stdout) == (1, "accepted 1, refused 2\n")
    first, second = result.stderr.splitlines()
    assert first == (
        "bad.jsonl:3: source 'checkins': key: the record has no field 'venue': {\"n\": 1}"
    )
    assert second.startswith("bad.jsonl:4: a record must be one whole JSON value; got ")
    result = command("send", "checkins", input="1\n" * 120 + "x" * 3_000_000)
    assert (result.exit_code, result.stdout) == (1, "accepted 0, refused 121\n")
    lines = result.stderr.splitlines()
    assert len(lines) == 102
    assert lines[0].startswith("stdin:1: ")
    assert "stdin:121: an event must have at most 1,048,576 bytes" in result.stderr
    assert "stdin: ... and 20 more" in result.stderr


def test_what_comes_through_a_pipe_is_not_held_up(live):
    """A line that was written into a pipe arrives while the pipe is open."""
    read, write = os.pipe()
    process = started("send", "checkins", url=live.url, stdin=read)
    os.close(read)
    try:
        for n in range(2):
            os.write(write, b'{"venue": "piped%d"}\n' % n)
            live.until_record("checkins", {"venue": f"piped{n}"})
    finally:
        os.close(write)
    assert process.communicate(timeout=20)[0] == "accepted 2, refused 0\n"


def test_a_terminal_sees_how_far_it_is(live, here):
    """On a terminal a large file shows its progress, and the line is cleared at the end."""
    (here / "large.jsonl").write_text('{"venue": "large"}\n' * 20_000)
    ours, theirs = pty.openpty()
    process = started("send", "checkins", "large.jsonl", url=live.url, stderr=theirs)
    os.close(theirs)
    assert process.communicate(timeout=20)[0] == "accepted 20,000, refused 0\n"
    shown = os.read(ours, 65536).decode()
    os.close(ours)
    assert re.search(r"millstream: accepted [\d,]+, refused 0 \(\d+% of the input\)", shown)
    assert shown.endswith("\r\x1b[K")


def test_mistakes(command, here):
    """A wrong word of the command is exit 2 and nothing is sent; a refusal is the server's."""
    (here / "a.jsonl").write_text('{"venue": "a"}\n')
    for words, code, message in (
        (("send", "chekins", "a.jsonl"), 1, "there is no stream 'chekins'; did you mean"),
        (("send", "checkins", "a.jsonl", "none.jsonl"), 2, "cannot read none.jsonl: No such file"),
        (("send", "checkins", "."), 2, "cannot read .: Is a directory"),
        (("send", "checkins", "a.jsonl", "--event", "1"), 2, "send files or --event, not both"),
        (("send", "checkins", "a.jsonl", "--token-file", "none"), 2, "token file none cannot be"),
        (("send", "checkins", "a.jsonl", "--url", "there"), 1, "must begin with http://"),
        (("tail", "hto"), 1, "there is no stream 'hto'; did you mean 'hot'?"),
        (("tail", "hot", "--from", "now"), 2, "--from must be end, start, a record's number"),
        (("slates", "watch", "cuont", "x"), 1, "there is no update 'cuont'; did you mean"),
        (("slates", "get", "count", "x", "--url", "http://x", "--store", "y"), 2, "not both"),
        (("slates", "scan", "count", "--token-file", "t"), 2, "name it with --url"),
        (("jobs", "--token-file", "t"), 2, "name it with --url"),
        (("deadletters", "retry", "--url", "http://x", "--store", "y"), 2, "not both"),
        (("deadletters", "retry", "--url", "http://x", "--app", "y"), 2, "not both"),
        (("deadletters", "retry", "--token-file", "t"), 2, "name it with --url"),
        (("deadletters", "retry", "--action", "a", "--url", "http://x", "--store", "y"), 2, "both"),
        (("deadletters", "retry", "--action", "a", "--token-file", "t"), 2, "name it with --url"),
    ):
        result = command(*words)
        assert result.exit_code == code, words
        assert result.stderr.startswith("error: "), words
        assert message in result.stderr
        assert result.stdout == ""


def test_no_server(command):
    """Without a server: exit 1 and what to do, at once."""
    for words in (("send", "checkins", "--event", "1"), ("tail", "hot")):
        result = command(*words, "--url", "http://127.0.0.1:1")
        assert (result.exit_code, result.stderr) == (
            1,
            "error: no server answers at http://127.0.0.1:1; start one with millstream run or "
            "millstream serve\n",
        )


def test_tail(command, live):
    """Each line is a JSON value. With --json it also has the record's number."""
    hot = next(UNUSED)
    live.emit(hot, {"key": "é"}, 2, 3)
    result = command("tail", hot, "--from", "start", "--limit", "2")
    assert (result.exit_code, result.stdout, result.stderr) == (0, '{"key":"é"}\n2\n', "")
    assert command("tail", hot, "--from", "2", "--limit", "1").stdout == "3\n"
    assert command("tail", hot, "--from", "-1", "--limit", "1", "--json").stdout == (
        '{"record":2,"value":3}\n'
    )


def test_ctrl_c_ends_a_tail_quietly(live):
    """A tail goes on until Ctrl-C, which is no error."""
    hot = next(UNUSED)
    live.emit(hot, "first")
    process = started("tail", hot, "--from", "start", url=live.url)
    assert process.stdout.readline() == '"first"\n'
    live.emit(hot, "second")
    assert process.stdout.readline() == '"second"\n'
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=20) == ("", "")
    assert process.returncode == 0


def test_slates_over_http(command, live):
    """With --url the slates come from the server, in the same form as from a store."""
    at = ("--url", live.url)
    result = command("slates", "get", "count", "a/b", *at)
    assert (result.exit_code, result.stdout, result.stderr) == (0, '{"count":1}\n', "")
    result = command("slates", "get", "count", "Target", *at)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "update 'count' has no slate for key 'Target'\n"
    lines = command("slates", "scan", "count", "--prefix", "W", *at).stdout.splitlines()
    assert [json.loads(line) for line in lines] == [
        {"key": "Walmart", "slate": {"count": 2}, "ts": 0}
    ]
    store = command("slates", "scan", "count", "--store", str(live.made.path)).stdout
    assert command("slates", "scan", "count", *at).stdout == store
    assert len(command("slates", "scan", "count", "--limit", "1", *at).stdout.splitlines()) == 1


def test_slates_watch(command, live):
    """The slate as it is now, then each change, one JSON object a line; none is null."""
    result = command("slates", "watch", "count", "Walmart", "--limit", "1")
    assert json.loads(result.stdout) == {"key": "Walmart", "slate": {"count": 2}, "ts": 0}
    process = started("slates", "watch", "count", "Target", url=live.url)
    assert json.loads(process.stdout.readline()) == {"key": "Target", "slate": None, "ts": None}
    live.made.commit({"count": {"Target": {"count": 1}}})
    assert json.loads(process.stdout.readline())["slate"] == {"count": 1}
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=20) == ("", "")
    assert process.returncode == 0


def test_tokens(command, tmp_path, here, monkeypatch):
    """The token comes from a file or from MILLSTREAM_TOKEN."""
    (here / "token").write_text("a-token-of-the-tests\n")
    send = ("send", "checkins", "--event", '{"venue": "x"}')
    with LiveServer(tmp_path / "guarded", token="a-token-of-the-tests") as server:
        at = ("--url", server.start().url)
        refused = command(*send, *at)
        assert refused.exit_code == 1
        assert "; name its file with --token-file, or set MILLSTREAM_TOKEN" in refused.stderr
        assert command(*send, *at, "--token-file", "token").exit_code == 0
        monkeypatch.setenv("MILLSTREAM_TOKEN", "a-token-of-the-tests")
        assert command(*send, *at).exit_code == 0


def test_which_server(live, here, tmp_path):
    """The address is --url, MILLSTREAM_URL, that of the only server that serves here, or the usual
    one; of several that serve here none is chosen."""
    usual = "http://127.0.0.1:8470"
    stores = here / ".millstream"
    assert chosen_url(None, {}, stores) == usual
    (stores / "one").mkdir(parents=True)
    lock = stores / "one" / "server.lock"
    lock.write_text("")
    assert chosen_url(None, {}, stores) == usual
    lock.write_text('{"pid": 1, "url": "http://127.0.0.1:1"}')
    assert chosen_url(None, {}, stores) == usual  # of a server that has died
    with closing(ServerLock(lock.parent)) as held:
        held.announce("http://127.0.0.1:1")
        assert chosen_url(None, {}, stores) == "http://127.0.0.1:1"
    assert chosen_url(None, {"MILLSTREAM_URL": "http://b"}, stores) == "http://b"
    assert chosen_url("http://a", {"MILLSTREAM_URL": "http://b"}, stores) == "http://a"
    store = {"MILLSTREAM_STORE": str(live.made.path)}
    assert chosen_url(None, store, stores) == live.url


def test_a_server_that_serves_here_is_found(here, monkeypatch):
    """Where a server serves a store under ./.millstream, no address is needed."""
    monkeypatch.delenv("MILLSTREAM_URL", raising=False)
    with LiveServer(here / ".millstream" / "retail") as server:
        server.start()
        result = CliRunner().invoke(main, ["send", "checkins", "--event", '{"venue": "here"}'])
        assert result.stdout == "accepted 1, refused 0\n"
        assert venues(server) == ["here"]
        with LiveServer(here / ".millstream" / "second") as second:
            second.start()
            result = CliRunner().invoke(main, ["tail", "hot"])
            assert result.exit_code == 2
            assert "several servers run here; name one with --url: http" in result.stderr


def test_httpx_is_loaded_only_when_needed(here):
    """The help of these commands, and reading a store, load no HTTP client."""
    code = (
        "import sys\n"
        "from click.testing import CliRunner\n"
        "from millstream.cli.main import main\n"
        "for words in (['send'], ['tail'], ['slates', 'watch'], ['slates', 'get']):\n"
        "    assert CliRunner().invoke(main, [*words, '--help']).exit_code == 0, words\n"
        "CliRunner().invoke(main, ['slates', 'get', 'count', 'x'])\n"
        "print([m for m in ('httpx', 'starlette', 'uvicorn', 'pyspark') if m in sys.modules])\n"
    )
    environ = {**os.environ, "PYTHONPATH": str(SOURCE)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environ, timeout=60
    )
    assert done.stdout.strip() == "[]", done.stdout + done.stderr
