"""CSV: text values under the header's names, and what makes a row bad."""

from __future__ import annotations

import csv
import gzip
import io
from pathlib import Path

import pytest
from generated_cases import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from millstream.errors import InputError
from millstream.model.text_form import TextForm, text_form
from millstream.sources.formats import Bad, InputSplit
from millstream.sources.named_format import format_named

PLAIN = TextForm()


def read(path: Path, form: TextForm = PLAIN) -> tuple[list[tuple[int, object]], list[Bad]]:
    chunks = list(format_named("csv", form).read(InputSplit(str(path), 0, None)))
    good = [(c.line_of(i), record) for c in chunks for i, record in enumerate(c.records)]
    return good, [one for chunk in chunks for one in chunk.bad]


def test_values_stay_text_and_rows_know_their_line(tmp_path: Path) -> None:
    """Every value is text; a row after a field with newlines still knows its line."""
    path = tmp_path / "a.csv"
    path.write_bytes(b'\xef\xbb\xbfa,b\r\n1,"x\ny"\r\n\r\n007,"say ""hi"""\n')
    good, bad = read(path)
    assert good == [(2, {"a": "1", "b": "x\ny"}), (5, {"a": "007", "b": 'say "hi"'})]
    assert bad == []


def test_bad_rows(tmp_path: Path) -> None:
    """Too few or too many fields, stray quotes and bad UTF-8 make a row bad, and only it."""
    path = tmp_path / "a.csv"
    path.write_bytes(b'a,b\n1\n1,2,3\n"x"y,2\n\xff,2\n3,4\n')
    good, bad = read(path)
    assert good == [(6, {"a": "3", "b": "4"})]
    assert [(one.line, one.value) for one in bad] == [
        (2, "1\n"),
        (3, "1,2,3\n"),
        (4, '"x"y,2\n'),
        (5, b"\xff,2\n"),
    ]
    assert "1 field, and the header has 2" in bad[0].error
    assert "bytes that are not UTF-8" in bad[3].error
    assert "encoding='latin-1'" in bad[3].error


def test_a_quote_that_is_never_closed(tmp_path: Path) -> None:
    """Only its line is bad; the error says where it opens, and what follows is read."""
    path = tmp_path / "a.csv"
    path.write_bytes(b'a,b\n1,2\n3,"4\n5,6\n7,"x\ny"\n')
    good, bad = read(path)
    assert good == [
        (2, {"a": "1", "b": "2"}),
        (4, {"a": "5", "b": "6"}),
        (5, {"a": "7", "b": "x\ny"}),
    ]
    assert [(one.line, one.value) for one in bad] == [(3, '3,"4\n')]
    assert "it opens in line 3, column 3; what follows is read from line 4 on" in bad[0].error


@pytest.mark.parametrize(
    ("text", "lines", "opens"),
    [
        (b'a,b\n1,"2\n3,"4"\n5,6\n', {3, 4}, "line 2, column 3"),
        (b'a,b\n"1\n1",2\n"x\ny","z\n5,6\n', {2, 6}, "line 5, column 4"),
        (b'a,b\n1,"2', set(), "line 2, column 3"),
        (b'a,b\n1,2\n"\n', {2}, "line 3, column 1"),
        (b'a,b\n1,"2"x\n3,4\n', {3}, "line 2, column 3"),
    ],
)
def test_quotes_that_do_not_match(tmp_path: Path, text: bytes, lines: set[int], opens: str) -> None:
    """A stray quote costs its own row, even if a later quote seems to close it."""
    path = tmp_path / "a.csv"
    path.write_bytes(text)
    good, bad = read(path)
    assert {line for line, _ in good} == lines
    assert len(bad) == 1
    assert f"it opens in {opens}" in bad[0].error


def test_the_first_quote_that_is_not_closed_in_a_large_file(tmp_path: Path) -> None:
    """All other rows of the file are read."""
    path = tmp_path / "a.csv"
    rows = [b"%d,x" % n for n in range(30_000)]
    rows[100] = b'100,"x'
    path.write_bytes(b"a,b\n" + b"\n".join(rows) + b"\n")
    good, bad = read(path)
    assert [record["a"] for _, record in good] == [str(n) for n in range(30_000) if n != 100]  # type: ignore[index]
    assert [one.line for one in bad] == [102]


def test_a_carriage_return_within_a_line(tmp_path: Path) -> None:
    """It does not count as an error of a quote."""
    path = tmp_path / "a.csv"
    path.write_bytes(b"a,b\n1,2\r3,4\n5,6\n")
    good, bad = read(path)
    assert good == [(3, {"a": "5", "b": "6"})]
    assert "got a carriage return within a line" in bad[0].error


def test_delimiters(tmp_path: Path) -> None:
    """Any one character; quoted, it is no delimiter."""
    path = tmp_path / "a.csv"
    for delimiter in (";", "\t", "|"):
        path.write_text(f'a{delimiter}b\n1{delimiter}"x{delimiter},y"\n')
        good, bad = read(path, TextForm(delimiter=delimiter))
        assert (good, bad) == ([(2, {"a": "1", "b": f"x{delimiter},y"})], [])


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16", "utf-16-le", "utf-8-sig"])
def test_encodings(tmp_path: Path, encoding: str) -> None:
    """Other encodings are read when they are named; UTF-16 with and without its mark."""
    path = tmp_path / "a.csv"
    path.write_bytes("name,town\r\nJosé,Genève\r\n".encode(encoding))
    good, bad = read(path, text_form("here", encoding=encoding))
    assert (good, bad) == ([(2, {"name": "José", "town": "Genève"})], [])


def test_utf_16_that_was_not_named(tmp_path: Path) -> None:
    """There is one error for the file, with advice."""
    path = tmp_path / "a.csv"
    path.write_bytes("a,b\n1,2\n".encode("utf-16"))
    good, bad = read(path)
    assert good == []
    assert [one.line for one in bad] == [0]
    assert "say encoding='utf-16'" in bad[0].error


def test_utf_16_that_breaks_off(tmp_path: Path) -> None:
    """Only the row that cannot be decoded is bad."""
    path = tmp_path / "a.csv"
    whole = "a,b\n1,2\n3,\ud800\n5,6\n".encode("utf-16", "surrogatepass")
    path.write_bytes(whole[:-1])
    good, bad = read(path, TextForm(encoding="utf-16"))
    assert good == [(2, {"a": "1", "b": "2"})]
    assert [one.line for one in bad] == [3, 4]


def test_a_header_that_names_a_column_twice(tmp_path: Path) -> None:
    """No row of the file is read: one of the columns would be lost."""
    path = tmp_path / "a.csv"
    path.write_bytes(b"a,a\n1,2\n")
    good, bad = read(path)
    assert good == []
    assert [one.line for one in bad] == [1]
    assert "'a' twice" in bad[0].error


def test_fields_larger_than_pythons_default(tmp_path: Path) -> None:
    """A field may be larger than 128 KiB."""
    path = tmp_path / "a.csv"
    path.write_text("a\n" + "x" * 300_000 + "\n")
    good, bad = read(path)
    assert (len(good), bad) == (1, [])


def test_gzip_whole_and_damaged(tmp_path: Path) -> None:
    """Compressed files are read; of a truncated one nothing is, and it is one bad file."""
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b"a\n1\n"))
    assert read(path) == ([(2, {"a": "1"})], [])
    path.write_bytes(gzip.compress(b"a\n" + b"".join(b"%d\n" % i for i in range(9999)))[:-99])
    good, bad = read(path)
    assert good == []
    assert [one.line for one in bad] == [0]


def test_a_vanished_file_stops_the_run(tmp_path: Path) -> None:
    """A file that was taken and is gone raises, and the error names it."""
    with pytest.raises(InputError, match=r"gone\.csv"):
        read(tmp_path / "gone.csv")


@settings(
    max_examples=examples(100),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.lists(st.tuples(st.text(st.characters(codec="utf-8")), st.text("ab\"',\n;"))))
def test_what_python_writes_is_read_back(tmp_path: Path, rows: list[tuple[str, str]]) -> None:
    """Everything that the csv module writes is read back, including newlines, quotes and commas."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, quoting=csv.QUOTE_ALL)
    writer.writerows([("a", "b"), *rows])
    path = tmp_path / "a.csv"
    path.write_bytes(text.getvalue().encode())
    good, bad = read(path)
    assert [record for _, record in good] == [{"a": a, "b": b} for a, b in rows]
    assert bad == []
