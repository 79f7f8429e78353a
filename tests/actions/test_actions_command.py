"""`millstream actions` over a real store."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from asking import Store, Told, drain
from click.testing import CliRunner, Result

from millstream.actions.attempt import AttemptOutcome
from millstream.cli.main import main


def call(*words: str) -> Result:
    result = CliRunner().invoke(main, ["actions", *words])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.output
    return result


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Two done, one dead letter, one being tried, one waiting."""
    store = Store(tmp_path)
    never, again = AttemptOutcome("never", "HTTP 404"), AttemptOutcome("again", "HTTP 503: busy")
    worker = store.worker(Told(AttemptOutcome("done"), never, AttemptOutcome("done"), again))
    store.ask("a", "b", "c", "d", "e", value={"n": 1})
    for _ in range(4):
        worker.step()
    worker.close()
    return store


def test_the_list(store: Store) -> None:
    """Each action has its counts of done, waiting and failed events, and the error that holds it
    up."""
    where = ("--store", str(store.path))
    for words in (where, ("list", *where), (*where, "list")):
        result = call(*words)
        assert result.exit_code == 0
        first, second = result.stdout.splitlines()
        assert first == "notify (stderr): 2 done, 2 waiting, 1 failed"
        assert second == "  retrying since 2023-11-14T22:13:20Z, 1 try: HTTP 503: busy"
    (line,) = call("list", "--json", *where).stdout.splitlines()
    assert json.loads(line)["retrying"]["error"] == "HTTP 503: busy"


def test_the_dead_letters(store: Store) -> None:
    """JSON lines with the event, the error, the tries and the times."""
    (line,) = call("failed", "notify", "--store", str(store.path)).stdout.splitlines()
    letter = json.loads(line)
    assert (letter["key"], letter["value"], letter["error"]) == ("b", {"n": 1}, "HTTP 404")
    assert (letter["id"], letter["record"], letter["tries"]) == (store.id(1), 1, 1)
    assert {"since", "last", "ts", "action"} <= set(letter)


def test_putting_back(store: Store) -> None:
    """The letters are waiting again, durably, and no longer failed. A second call finds nothing to
    put back."""
    where = ("--store", str(store.path))
    assert "1 dead letter is put back" in call("retry", "notify", *where).stderr
    assert "2 done, 3 waiting, 0 failed" in call(*where).stdout
    assert call("failed", "notify", *where).stdout == ""
    assert len(call("failed", "notify", "--all", *where).stdout.splitlines()) == 1
    assert "no dead letters" in call("retry", "notify", *where).stderr
    carrier = Told()
    worker = store.worker(carrier)
    drain(store, worker)
    worker.close()
    assert carrier.keys == ["b", "d", "e"]
    assert carrier.carried[0].id == store.id(1, "-r1")


def test_they_are_dead_letters_as_others_are(store: Store) -> None:
    """`millstream deadletters` mentions them, lists them and puts them back."""

    def deadletters(*words: str, code: int = 0) -> Result:
        result = CliRunner().invoke(main, ["deadletters", *words, "--store", str(store.path)])
        assert result.exit_code == code, result.output
        return result

    said = deadletters().stderr
    assert "action 'notify' gave up 1 event; see them with millstream deadletters --action" in said
    assert deadletters("--action", "notify").stdout.splitlines() == [
        "action notify, key 'b', 1970-01-01T00:00:00.000001Z",
        "  HTTP 404 (1 try, the last at 2023-11-14T22:13:20Z)",
        '  value {"n":1}',
    ]
    (line,) = deadletters("--action", "notify", "--json").stdout.splitlines()
    assert json.loads(line)["id"] == store.id(1)
    retry = ("retry", "--action", "notify")
    assert "must have no other filter" in deadletters(*retry, "--key", "b", code=2).output
    assert deadletters(*retry, "--dry-run").stdout == (
        "1 dead letter of action 'notify' would be put back\n"
    )
    assert "1 dead letter of action 'notify' is put back" in deadletters(*retry).stdout
    assert "0 dead letters of action" in deadletters(*retry).stdout
    assert "gave up" not in deadletters().stderr
    assert "retried" in deadletters("--action", "notify").stdout
    assert "no dead letters" in deadletters("--action", "notify", "--left").stderr
    assert "there is no action 'notfy'" in deadletters("--action", "notfy", code=2).output


def test_a_run_wants_an_address(tmp_path: Path) -> None:
    """`--action` says what it must be; without an address nothing is started."""
    app = tmp_path / "app.py"
    app.write_text(
        "import millstream as ms\napp = ms.App('alerts')\napp.source('in')\n"
        "app.action('notify')\n\n@app.map('in', publishes='notify')\n"
        "def watch(event):\n    yield ms.emit()\n"
    )
    words = ["run", str(app), "--store", str(tmp_path / "store")]
    result = CliRunner().invoke(main, [*words, "--action", "notify"])
    assert result.exit_code == 2
    assert "--action must be NAME=ADDRESS, as in --action out=stderr" in result.stderr
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 2
    assert "action 'notify' of app 'alerts' has no address" in result.stderr
    assert "starting Spark" not in result.stderr


def test_a_wrong_name_and_an_empty_store(store: Store, tmp_path: Path) -> None:
    """The nearest name is offered; a store without actions says so."""
    result = call("failed", "notfy", "--store", str(store.path))
    assert result.exit_code == 2
    assert "did you mean 'notify'" in result.stderr
    (tmp_path / "empty").mkdir()
    assert "no actions" in call("--store", str(tmp_path / "empty")).stderr


def test_a_damaged_record_is_shown(store: Store) -> None:
    """The list names the file and what to do. Other actions are listed too."""
    (store.path / "actions" / "notify").write_bytes(b"00000000 {}\n")
    result = call("--store", str(store.path))
    assert "actions/notify" in result.stdout
    assert "delete it" in result.stdout
