"""What is said of a query that Spark has ended, and of checkpoint files that it cannot read."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import cast
from zlib import crc32

import pytest
from pyspark.errors import StreamingQueryException

from millstream.checkpoint import offset_of, with_check
from millstream.errors import RunError, StoreError
from millstream.spark.failures import from_spark
from millstream.spark.following import STARTS, follow
from millstream.spark.offsets import check_checkpoint
from millstream.spark.runner import Driver
from millstream.stores.progress import Progress

ENDED = "\n".join(
    [
        "[STREAM_FAILED] Query [id = 1e19] terminated with exception: {cause} SQLSTATE: XXKST",
        "=== Streaming Query ===",
        "~WriteToMicroBatchDataSourceV1 ForeachBatchSink, 1e19, "
        "[checkpointLocation=file:///data/store/checkpoint], Append",
        "+- ~StreamingDataSourceV2ScanRelation[beat#0] millstream_heartbeat",
    ]
)


def test_what_spark_could_not_do_is_told_with_its_place() -> None:
    """A full disk under Spark's own files reads like one under ours, without Spark's plan."""
    error = from_spark(
        Exception(ENDED.format(cause="java.io.IOException: No space left on device"))
    )
    assert str(error) == (
        "/data/store/checkpoint: Spark ended the query: No space left on device; make room and "
        "start again"
    )


def test_our_own_error_is_taken_out_of_a_traceback() -> None:
    """What a task raised is said as it was raised, the last one if there are several."""
    text = (
        "Traceback:\n  ...\nmillstream.errors.StoreError: shard 3: the disk is full\n\nat org.a.b\n"
    )
    assert str(from_spark(Exception(text))) == "shard 3: the disk is full"


SLOW = "org.apache.spark.SparkException: Python worker failed to connect back."


class SlowlyStarted:
    """What `follow` needs of a driver. Its query ends at once, the first `slow` times with what
    Spark says when its Python process was not there in time."""

    def __init__(self, slow: int, *, begun: bool = False) -> None:
        self.slow, self.has_begun = slow, begun
        self.error: Exception | None = None
        self.starts = self.ends = 0
        self.said: list[str] = []
        self.say = self.said.append
        self.leaving, self.running = threading.Event(), threading.Lock()

    def start(self) -> SlowlyStarted:
        self.starts += 1
        return self

    def awaitTermination(self, timeout: float) -> bool:  # noqa: N802  # Spark's name
        if self.starts <= self.slow:
            raise StreamingQueryException(ENDED.format(cause=SLOW))
        return True

    def stop(self) -> None:
        self.ends += 1

    def flush(self, *, ended: bool) -> None:
        assert ended


def test_a_query_that_starts_too_slowly_is_started_again() -> None:
    """Nothing was read yet, so there is nothing to lose; it is said, and ended once."""
    driver = SlowlyStarted(2)
    follow(cast(Driver, driver), None)
    assert (driver.starts, driver.ends, len(driver.said)) == (3, 1, 2)


@pytest.mark.parametrize(("slow", "begun", "starts"), [(99, False, STARTS), (99, True, 1)])
def test_not_for_ever_and_not_after_a_batch(slow: int, begun: bool, starts: int) -> None:
    """Past that it is an error that says what to do; the query is ended."""
    driver = SlowlyStarted(slow, begun=begun)
    with pytest.raises(RunError, match=r"too busy to start a process .* nothing is lost"):
        follow(cast(Driver, driver), None)
    assert (driver.starts, driver.ends) == (starts, 1)


def checkpoint_of(folder: Path, batches: int) -> Progress:
    """A checkpoint as Spark leaves it, and the progress of its last batch."""
    (folder / "offsets").mkdir(parents=True)
    (folder / "metadata").write_text('{"id":"q"}')
    for batch in range(batches):
        offset = json.dumps(with_check({"clock": batch, "positions": {}}))
        (folder / "offsets" / str(batch)).write_text(f"v1\n{{}}\n{offset}")
    last = (folder / "offsets" / str(batches - 1)).read_bytes()
    return Progress(batch=batches - 1, query="q", offsets=crc32(last))


@pytest.mark.parametrize("length", [None, 0, 9])
def test_damaged_offsets_of_the_batch_before_are_written_anew(
    tmp_path: Path, length: int | None
) -> None:
    """Spark reads them to repeat a batch that is skipped; missing or torn, they would stop it."""
    progress = checkpoint_of(tmp_path, 3)
    before = tmp_path / "offsets" / "1"
    if length is None:
        before.unlink()
    else:
        before.write_bytes(before.read_bytes()[:length])
    assert check_checkpoint(tmp_path, progress) == "q"
    assert offset_of(before.read_bytes())["clock"] == 2


def test_whole_offsets_are_left_and_damage_of_the_last_is_refused(tmp_path: Path) -> None:
    """Only what nothing depends on is written anew."""
    progress = checkpoint_of(tmp_path, 3)
    check_checkpoint(tmp_path, progress)
    assert offset_of((tmp_path / "offsets" / "1").read_bytes())["clock"] == 1
    (tmp_path / "offsets" / "2").write_text("v1\n{}\n{}")
    with pytest.raises(StoreError, match=r"offsets/2: checksum .* restore the checkpoint"):
        check_checkpoint(tmp_path, progress)
