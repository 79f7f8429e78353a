"""Retries of records that never became events: what is read again is the record, or nothing is."""

from __future__ import annotations

import gzip
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

import millstream as ms
from millstream.cli.main import main
from millstream.description import describe, write_description
from millstream.driver.in_process import run
from millstream.letters.retry_log import RETRIED, LetterRetry, retry_letters
from millstream.letters.selection import LetterFilter
from millstream.log.retention import Retention
from millstream.log.stream_logs import FolderLogs
from millstream.messages.letters import Retried
from millstream.model.letter_records import KEPT_BYTES
from millstream.settings.settings import Settings
from millstream.stores.reader import SlateReader
from millstream.stores.soft import read_committed

WRONG = r"(?P<user>\d+) (?P<text>.*)"
MENDED = r"(?P<user>\w+) (?P<text>.*)"


def lines(**source: Any) -> ms.App:
    """Keeps the text of the last line of each user."""
    app = ms.App("lines", order="arrival")
    app.source("lines", **{"key": "user", **source})

    @app.update("lines")
    def last(event: Any, slate: Any) -> None:
        slate["text"] = event.value.get("text")

    return app


def settings(tmp_path: Path, format: str = "text", **more: Any) -> Settings:
    given = {"available_now": True, "shards": 1, "check_store": False, **more}
    address = f"{format}:{tmp_path / 'in'}"
    return Settings.of("lines", tmp_path / "store", {"lines": address}, **given)


def put(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / "in").mkdir(exist_ok=True)
    (tmp_path / "in" / name).write_bytes(content)


def retry(tmp_path: Path) -> Retried:
    return retry_letters(FolderLogs(tmp_path / "store" / "logs"), LetterFilter(), {})


def letters(tmp_path: Path) -> list[dict[str, Any]]:
    with closing(FolderLogs(tmp_path / "store" / "logs").reader("deadletters")) as reader:
        blocks = reader.blocks(reader.start[0], reader.end[0])
        return [msgspec.json.decode(line) for block in blocks for line in block.lines]


def text_of(tmp_path: Path, user: str = "ann") -> Any:
    with SlateReader(tmp_path / "store") as reader:
        slate = reader.get("last", user)
        return None if slate is None else slate.value["text"]


def test_a_long_line_is_retried_whole(tmp_path: Path) -> None:
    """A line of 5,000 characters that did not match the pattern is kept, and read, to its end."""
    text = "é" * 4_996
    put(tmp_path, "a.txt", f"ann {text}\n".encode())
    assert run(lines(pattern=WRONG), settings(tmp_path)).dead_letters == 1
    assert retry(tmp_path).given == 1
    run(lines(pattern=MENDED), settings(tmp_path))
    assert text_of(tmp_path) == text


def test_a_run_of_a_torn_file_advises_no_retry(tmp_path: Path) -> None:
    """A retry cannot help: the file must come again, and the run does not say otherwise. A run with
    letters that can be retried still says so."""
    put(tmp_path, "a.txt.gz", gzip.compress(b"ann 1\n")[:-9])
    torn = run(lines(pattern=MENDED), settings(tmp_path)).dead_input
    assert torn is not None
    assert "rename it into the directory under a new name" in torn
    assert torn.endswith("such a letter cannot be retried")
    assert retry(tmp_path).given == 0
    put(tmp_path, "b.txt", b"ann 1\n")
    wrong = run(lines(pattern=WRONG), settings(tmp_path)).dead_input
    assert wrong is not None
    assert wrong.endswith("then retry the letters with `millstream deadletters retry`")


def test_a_line_that_is_too_long_to_be_kept_is_not_retried(tmp_path: Path) -> None:
    """Its letter has only its beginning; the retry says why, and what to do."""
    put(tmp_path, "a.txt", b"ann " + b"x" * KEPT_BYTES + b"\n")
    run(lines(pattern=WRONG), settings(tmp_path))
    (letter,) = letters(tmp_path)
    assert (letter["form"], len(letter["value"])) == ("part", 2_000)
    outcome = CliRunner().invoke(main, ["deadletters", "retry", "--store", str(tmp_path / "store")])
    assert outcome.exit_code == 0
    assert "0 dead letters are retried" in outcome.output
    assert "it is a record that was not kept whole; take it in again" in outcome.output


@pytest.mark.parametrize("more", [(), ("--dry-run",), ("--kind", "late")])
def test_a_misspelled_function_is_an_error(tmp_path: Path, more: tuple[str, ...]) -> None:
    """It says which there are. One that has no letters is no error."""
    put(tmp_path, "a.txt", b"ann 1\n")
    run(app := lines(pattern=WRONG), settings(tmp_path))
    write_description(tmp_path / "store", describe(app.checked(), {"lines": "text:in"}))
    command = ["deadletters", "retry", "--store", str(tmp_path / "store"), *more, "--function"]
    outcome = CliRunner().invoke(main, [*command, "latest"])
    assert outcome.exit_code == 1
    assert outcome.stderr == "error: there is no function 'latest'; did you mean 'last'?\n"
    assert "there are: last" in CliRunner().invoke(main, [*command, "x"]).stderr
    assert CliRunner().invoke(main, [*command, "last"]).exit_code == 0


@pytest.mark.parametrize("pattern", [None, r"(?P<user>\w+) (?P<text>.*)"])
def test_bytes_that_are_not_utf_8_are_retried_as_they_came(
    tmp_path: Path, pattern: str | None
) -> None:
    """They are in the letter as bytes, so a source whose encoding was missing reads them right."""
    key = {} if pattern else {"key": lambda record: record["line"].split()[0]}
    put(tmp_path, "a.txt", "ann caf\u00e9\n".encode("latin-1"))
    run(lines(pattern=pattern, **key), settings(tmp_path))
    (letter,) = letters(tmp_path)
    assert (letter["bytes"], letter["form"]) == ("YW5uIGNhZuk=", "line")
    assert retry(tmp_path).given == 1
    run(lines(pattern=MENDED, encoding="latin-1"), settings(tmp_path))
    assert text_of(tmp_path) == "café"


def test_a_line_that_looks_like_json_is_read_as_a_line(tmp_path: Path) -> None:
    """A source of text reads it with its pattern, not as JSON."""
    put(tmp_path, "a.txt", b'{"user":"ann","text":"no"}\n')
    run(lines(pattern=WRONG), settings(tmp_path))
    retry(tmp_path)
    pattern = r'\{"user":"(?P<user>\w+)","text":(?P<text>.*)\}'
    run(lines(pattern=pattern), settings(tmp_path))
    assert text_of(tmp_path) == '"no"'


def test_a_row_of_csv_and_a_whole_file_are_not_retried(tmp_path: Path) -> None:
    """A row has no header, and nothing of a damaged file was kept."""
    put(tmp_path, "a.csv", b"user,text\nann\n")
    put(tmp_path, "b.csv.gz", b"\x1f\x8b no")
    run(lines(), settings(tmp_path, "csv"))
    outcome = retry(tmp_path)
    assert outcome.given == 0
    assert sorted(outcome.impossible) == [
        "a row of a CSV file, which cannot be read without its header; take it in again from "
        "where it came",
        "a whole file; write it again, complete, under a new name",
    ]


def stored_before(value: str) -> dict[str, Any]:
    """A letter as an earlier version stored it: without a form."""
    place = {"batch": 0, "timer": None, "file": "in/a.txt", "line": 1}
    return {
        **{"function": None, "stream": "lines", "ts": 0, "key": "", "value": value},
        **{"error": "the line does not match the pattern", **place},
    }


@pytest.mark.parametrize("text", ["x" * 1_996, "caf\ufffd"])
def test_a_letter_of_before_that_may_not_be_whole_is_not_retried(tmp_path: Path, text: str) -> None:
    """Earlier versions cut at 2,000 characters and replaced bytes; a retry before the upgrade, that
    the application has not taken in yet, is refused too. Others are retried."""
    put(tmp_path, "a.txt", b"bob fine\n")
    run(lines(pattern=MENDED), settings(tmp_path))
    logs = FolderLogs(tmp_path / "store" / "logs")
    doubtful, whole = stored_before(f"ann {text}"), stored_before("cid fine")
    with closing(logs.writer("deadletters", Retention(None, None))) as writer:
        writer.append([*(_entry(row) for row in (doubtful, whole))])
    outcome = retry(tmp_path)
    assert outcome.given == 1
    assert [reason[:43] for reason in outcome.impossible] == [
        "a record that an earlier version may have c"
    ]
    with closing(logs.writer(RETRIED, Retention(None, None))) as writer:
        writer.append([_entry(LetterRetry("deadletters", 0, doubtful))])
    again = run(lines(pattern=MENDED), settings(tmp_path))
    assert (again.retried, again.dead_letters) == (2, 1)
    assert (text_of(tmp_path, "ann"), text_of(tmp_path, "cid")) == (None, "fine")
    assert "a retry needs the whole record" in letters(tmp_path)[-1]["error"]
    assert read_committed(tmp_path / "store").counts("last").residual == 0


def _entry(row: Any) -> Any:
    from millstream.log.entries import Entry

    return Entry.of([msgspec.json.encode(row)], "")


def test_letters_go_on_in_a_sink_of_parquet_of_before(tmp_path: Path) -> None:
    """Its files of before have no column `form`: a new file begins."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    sinks = {"deadletters": f"parquet:{tmp_path / 'out'}"}
    put(tmp_path, "a.txt", b"ann one\n")
    run(lines(pattern=WRONG), settings(tmp_path, sinks=sinks))
    (file,) = (tmp_path / "out").glob("*.parquet")
    pq.write_table(pq.read_table(file).drop_columns(["form"]), file)
    record = next((tmp_path / "out").glob(".millstream-*"))
    begun = msgspec.json.decode(record.read_bytes())
    record.write_bytes(msgspec.json.encode({**begun, "form": ""}))
    put(tmp_path, "b.txt", b"ann two\n")
    run(lines(pattern=WRONG), settings(tmp_path, sinks=sinks))
    tables = [pq.read_table(path) for path in sorted((tmp_path / "out").glob("*.parquet"))]
    assert [table.num_rows for table in tables] == [1, 1]
    assert tables[1]["form"].to_pylist() == ["line"]
    assert pa.types.is_string(tables[1]["form"].type)
