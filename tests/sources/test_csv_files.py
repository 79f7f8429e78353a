"""CSV: text values under the header's names, and what makes a row bad."""

from __future__ import annotations

import csv
import gzip
import io
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from millstream.errors import InputError
from millstream.sources.formats import Bad, Split, format_named

FORMAT = format_named("csv")


def read(path: Path) -> tuple[list[tuple[int, object]], list[Bad]]:
    chunks = list(FORMAT.read(Split(str(path), 0, None)))
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
    assert [(one.line, one.text) for one in bad] == [
        (2, "1\n"),
        (3, "1,2,3\n"),
        (4, '"x"y,2\n'),
        (5, "\ufffd,2\n"),
    ]
    assert "1 field, and the header has 2" in bad[0].error
    assert "UTF-8" in bad[3].error


def test_a_quote_that_is_never_closed(tmp_path: Path) -> None:
    """The error says which lines were swallowed."""
    path = tmp_path / "a.csv"
    path.write_bytes(b'a,b\n1,2\n"3,4\n5,6\n')
    good, bad = read(path)
    assert good == [(2, {"a": "1", "b": "2"})]
    assert [one.line for one in bad] == [3]
    assert "never closed (lines 3 to 4)" in bad[0].error


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
    """Compressed files are read; a truncated one is one bad file after what could be read."""
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b"a\n1\n"))
    assert read(path) == ([(2, {"a": "1"})], [])
    path.write_bytes(gzip.compress(b"a\n" + b"".join(b"%d\n" % i for i in range(9999)))[:-99])
    good, bad = read(path)
    assert good == [(i + 2, {"a": str(i)}) for i in range(len(good))]
    assert [one.line for one in bad][-1] == 0


def test_a_vanished_file_stops_the_run(tmp_path: Path) -> None:
    """A file that was taken and is gone raises, and the error names it."""
    with pytest.raises(InputError, match=r"gone\.csv"):
        read(tmp_path / "gone.csv")


@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.tuples(st.text(st.characters(codec="utf-8")), st.text("ab\"',\n;"))))
def test_what_python_writes_is_read_back(tmp_path: Path, rows: list[tuple[str, str]]) -> None:
    """Whatever the csv module writes comes back, newlines, quotes and commas included."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, quoting=csv.QUOTE_ALL)
    writer.writerows([("a", "b"), *rows])
    path = tmp_path / "a.csv"
    path.write_bytes(text.getvalue().encode())
    good, bad = read(path)
    assert [record for _, record in good] == [{"a": a, "b": b} for a, b in rows]
    assert bad == []
