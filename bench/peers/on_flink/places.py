"""The environment of a PyFlink job, its input and its output.

A Python function asks the JVM for each state that it has not cached: more are cached than the 1,000
that are by itself. State is in RocksDB, a checkpoint of it is taken every second, exactly once, and
files of results are complete with a checkpoint.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from progress import Progress
from pyflink.common import Configuration, Encoder, WatermarkStrategy
from pyflink.common.typeinfo import Types
from pyflink.datastream import DataStream, StreamExecutionEnvironment
from pyflink.datastream.connectors.file_system import (
    FileSink,
    FileSource,
    RollingPolicy,
    StreamFormat,
)
from pyflink.datastream.functions import RuntimeContext

WORKERS = 2
LAST = 2**63 - 2
"""An event time that comes only when the input is over."""


def environment() -> StreamExecutionEnvironment:
    """Two workers, RocksDB, a checkpoint a second."""
    settings = Configuration()
    for name, value in (
        ("parallelism.default", str(WORKERS)),
        ("python.executable", sys.executable),
        ("python.client.executable", sys.executable),
        ("python.state.cache-size", "200000"),
        ("state.backend.type", "rocksdb"),
        ("execution.checkpointing.interval", "1 s"),
        ("execution.checkpointing.mode", "EXACTLY_ONCE"),
        ("execution.checkpointing.dir", Path(os.environ["PEER_STATE"]).as_uri()),
    ):
        settings.set_string(name, value)
    return StreamExecutionEnvironment.get_execution_environment(settings)


def lines(env: StreamExecutionEnvironment, folder: str) -> DataStream:
    """The lines of the files of a folder of the input."""
    path = str(Path(os.environ["PEER_INPUT"]) / folder)
    files = FileSource.for_record_stream_format(StreamFormat.text_line_format(), path)
    source = files.process_static_file_set().build()
    return env.from_source(source, WatermarkStrategy.no_watermarks(), folder or "lines")


def written(answers: DataStream) -> None:
    """Writes lines of answers into files."""
    sink = FileSink.for_row_format(os.environ["PEER_RESULT"], Encoder.simple_string_encoder())
    policy = RollingPolicy.on_checkpoint_rolling_policy()
    answers.sink_to(sink.with_rolling_policy(policy).build())


def counter(context: RuntimeContext) -> tuple[Any, int]:
    """The numbers in which a function says how far it is, and which of them is its own."""
    number = context.get_index_of_this_subtask()
    return Progress(f"{os.environ['PEER_PROGRESS']}-{number}").slots, number


TEXT = Types.STRING()
