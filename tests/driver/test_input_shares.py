"""How the input of a batch is divided among its tasks."""

import gzip
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from millstream.driver.inputs.input_shares import LEAST_BYTES, cut_shares, grouped, parts_of
from millstream.sources.files import FileLog
from millstream.sources.formats import InputSplit
from millstream.sources.named_format import format_named


def taken_in(folder: Path, sizes: list[int]) -> FileLog:
    """A list of files of these sizes, of lines of one byte and their ends."""
    data = folder / "data"
    data.mkdir()
    for number, size in enumerate(sizes):
        (data / f"{number:02d}").write_bytes(b"1\n" * (size // 2))
    log = FileLog(str(folder / "log"), format_named("json"), write=True)
    log.refresh(str(data))
    return log


@given(
    st.lists(st.integers(1, 200).map(lambda half: 2 * half), min_size=1, max_size=6),
    st.floats(0, 1),
    st.floats(0, 1),
    st.integers(1, 5),
)
def test_shares_of_files_are_equal_and_cover_the_batch(
    sizes: list[int], begin: float, length: float, parts: int
) -> None:
    """Whatever files a batch takes, its shares follow each other without a gap, and differ by no
    more than a few bytes: a batch of one file and a rest of another is read by all tasks alike."""
    with TemporaryDirectory() as root:
        log = taken_in(Path(root), sizes)
        whole = log.bytes_between([0, 0], log.end)
        start = log.take([0, 0], int(begin * whole)) if begin else [0, 0]
        end = log.take(start, int(length * whole))
        shares = cut_shares(log, start, end, parts)
        read = [split for share in shares for split in share.splits]
        expected = log.splits(start, end, whole)
        assert _bytes(read) == _bytes(expected)
        assert sum(share.bytes for share in shares) == log.bytes_between(start, end)
        size = log.bytes_between(start, end)
        assert len(shares) == min(parts, size)
        assert all(abs(share.bytes - size / parts) <= 1 for share in shares if size >= parts)
        log.close()


def _bytes(splits: list[InputSplit]) -> list[tuple[str, int]]:
    """Every byte of the splits, in order."""
    return [(split.path, at) for split in splits for at in range(split.start, split.stop or 0)]


def test_a_file_that_cannot_be_cut_is_one_share(tmp_path: Path) -> None:
    """Two compressed files for four tasks are two shares."""
    data = tmp_path / "data"
    data.mkdir()
    for name in ("a.gz", "b.gz"):
        (data / name).write_bytes(gzip.compress(b"1\n", mtime=0))
    size = (data / "a.gz").stat().st_size
    log = FileLog(str(tmp_path / "log"), format_named("json"), write=True)
    log.refresh(str(data))
    assert [share.bytes for share in cut_shares(log, [0, 0], log.end, 4)] == [size, size]
    log.close()


@given(st.lists(st.integers(0, 100), max_size=12), st.integers(1, 4))
def test_groups_are_as_equal_as_the_largest_share_allows(sizes: list[int], tasks: int) -> None:
    """Every share is read once, and no task has more than the least one and a largest share."""
    groups = grouped([(size, [(number, size)]) for number, size in enumerate(sizes)], tasks)
    assert sorted(piece for group in groups for piece in group) == [*enumerate(sizes)]
    assert len(groups) == max(1, min(tasks, len(sizes)))
    loads = [sum(size for _, size in group) for group in groups]
    assert max(loads) - min(loads) <= max(sizes, default=0)


def test_small_input_is_not_divided() -> None:
    """A small batch is one part, however many tasks there are."""
    assert parts_of(LEAST_BYTES, 8) == 1
    assert parts_of(3 * LEAST_BYTES, 8) == 3
    assert parts_of(100 * LEAST_BYTES, 8) == 8
