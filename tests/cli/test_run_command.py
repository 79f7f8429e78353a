"""`millstream run` up to the door of Spark, with a stand-in behind it, and what it shows."""

import os
import signal
import sys
from contextlib import closing, nullcontext
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

import millstream as ms
from millstream.cli.commands.run import run_app
from millstream.cli.progress import Lines, line, moment, summary
from millstream.driver.report import BatchSummary, RunSummary
from millstream.errors import FunctionError
from millstream.log.writer import Entry, LogWriter
from millstream.service.app_description import describe_app
from millstream.settings.settings import Settings
from millstream.stores.home import Home


def report(batch: int, total: int, **more: object) -> BatchSummary:
    known = {
        "batch": batch, "events": 1000, "late": 0, "dead_letters": 0, "seconds": 0.5,
        "total_events": total, "total_late": 0, "total_dead_letters": 0, "bytes_done": 50,
        "bytes_total": 200, "waiting": 0, "horizon": None, "lane": "one-task",
    }  # fmt: skip
    return BatchSummary(**(known | more))


class Spark:
    """Replaces `spark.runner.run`: records its arguments, and acts as configured."""

    def __init__(self) -> None:
        self.settings: Settings | None = None
        self.raises: BaseException | None = None
        self.signals: list[int] = []
        self.stopped = False
        self.result = RunSummary(batches=2, events=30, late=1, dead_letters=0, seconds=1.5)

    def run(self, app, settings, on_report=None, *, stop=None, **others):
        self.settings = settings
        for number in self.signals:
            os.kill(os.getpid(), number)
            self.stopped = stop.wait(10)
        if self.raises is not None:
            raise self.raises
        on_report(report(0, 30))
        return self.result


@pytest.fixture
def spark(monkeypatch) -> Spark:
    stand_in, module = Spark(), ModuleType("millstream.spark.runner")
    module.run = stand_in.run
    monkeypatch.setitem(sys.modules, "millstream.spark.runner", module)
    monkeypatch.setattr("millstream.spark.context_lease.early_lease", lambda *_: nullcontext())
    return stand_in


RUN = ("run", "retail/app.py", "--source", "checkins=json:retail/data/checkins")


def test_flags_become_settings(millstream, retail, spark):
    """Every flag arrives in the settings; stdout stays empty; the summary is one calm line."""
    result = millstream(
        *RUN, "--store", "kept", "--shards", "4", "--tasks", "2", "--available-now",
        "--batch-bytes", "1MiB", "--lane", "shuffled", "--master", "local[2]", "--memory", "2g",
        "--sink", "late=parquet:late",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert spark.settings == Settings.of(
        app="retail", store=Path("kept"), sources={"checkins": "json:retail/data/checkins"},
        sinks={"late": "parquet:late"}, shards=4, tasks=2, available_now=True,
        batch_bytes=1024 * 1024, lane="shuffled", master="local[2]", memory="2g",
    )  # fmt: skip
    assert result.stdout == ""
    said = result.stderr.splitlines()
    assert said[0] == "millstream: app retail, store kept, starting ..."
    assert said[-1] == (
        "millstream: 30 events in 2 batches, 1.5 s (20 events/s), 1 late; store kept"
    )


def test_dead_letters_are_pointed_to(millstream, retail, spark):
    """When something failed, the last line says where to look."""
    spark.result = RunSummary(batches=1, events=3, late=0, dead_letters=1, seconds=0.0)
    said = millstream(*RUN).stderr.splitlines()
    assert said[-2].endswith("1 dead letter; store .millstream/retail")
    assert said[-1].endswith("millstream deadletters --store .millstream/retail")


def test_the_first_line_comes_before_spark(millstream, retail, spark):
    """Errors are found, and the first line is printed, before Spark is started."""
    spark.raises = AssertionError("not to be reached")
    assert millstream("run", "retail/app.py", "--final").exit_code == 2
    assert millstream(*RUN, "--host", "0.0.0.0").exit_code == 2
    assert millstream(*RUN, "--shards", "0").exit_code == 2
    assert millstream(*RUN, "--source", "checkins=json:x").exit_code == 2
    assert millstream("run", "retail/app.py", "--source", "checkins").exit_code == 2
    assert spark.settings is None


def test_events_that_nobody_reads_are_told(here, capsys):
    """Events that were sent to a source's log are not left without a word when a run reads the
    source from elsewhere."""
    app = ms.App("moved")
    app.source("in")
    app.update("in", name="count")(lambda event, slate: None)
    store = here / "store"
    Home.make(store, "moved", None, {"count": "dict"})
    describe_app(app, Settings.of("moved", store, {"in": "json:files"}))
    assert capsys.readouterr().err == ""
    with closing(LogWriter(store / "logs" / "in")) as log:
        log.append([Entry.of([b"1", b"2"])])
    describe_app(app, Settings.of("moved", store, {"in": "json:files"}))
    said = capsys.readouterr().err
    assert "source 'in': 2 records that were sent to its log are not read" in said
    assert "--source in=log" in said


def test_a_failed_run_exits_1(millstream, retail, spark):
    """An application that fails is one line on stderr and exit 1."""
    spark.raises = FunctionError("update 'count' (app.py:15), key 'x': no")
    result = millstream(*RUN)
    assert result.exit_code == 1
    assert result.stderr.splitlines()[-1] == "error: update 'count' (app.py:15), key 'x': no"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_asks_the_run_to_stop(millstream, retail, spark, number):
    """Ctrl-C, or SIGTERM, sets the event of the run; the summary is shown and the exit is 0."""
    spark.signals, before = [number], signal.getsignal(number)
    result = millstream(*RUN)
    assert spark.stopped
    assert result.exit_code == 0
    assert "millstream: stopping; interrupt again" in result.stderr
    assert result.stderr.splitlines()[-1].startswith("millstream: 30 events in 2 batches")
    assert signal.getsignal(number) is before


def test_app_run_takes_settings_from_code(here, spark, monkeypatch):
    """`app.run(**settings)` is the weakest layer: a variable wins over it."""
    app = ms.App("scripted")
    app.source("in")
    app.update("in", name="count")(lambda event, slate: None)
    monkeypatch.setenv("MILLSTREAM_SHARDS", "3")
    run_app(app, {"sources": {"in": "json:x"}, "shards": 2, "tasks": 2})
    assert spark.settings is not None
    assert (spark.settings.storage.shards, spark.settings.batches.tasks) == (3, 2)
    with pytest.raises(ms.DefinitionError, match="did you mean 'shards'"):
        app.run(shard=1)


def test_lines_come_every_five_seconds(capsys):
    """The first batch gets a line, then at most one every five seconds, with the rate between."""
    clock = iter([0.0, 1.0, 4.9, 5.0, 11.0])
    lines = Lines(lambda: next(clock))
    for batch, total in enumerate([1000, 2000, 3000, 6000, 6060]):
        lines(report(batch, total))
    said = capsys.readouterr().err.splitlines()
    assert said == [
        "millstream: batch 0, 1,000 events (2,000/s), 25% of the input",
        "millstream: batch 3, 6,000 events (1,000/s), 25% of the input",
        "millstream: batch 4, 6,060 events (10/s), 25% of the input",
    ]


class Later:
    """Stands in for a timer: `pass_to` moves the clock and calls what is due."""

    def __init__(self) -> None:
        self.now = 0.0
        self.due: list[tuple[float, object]] = []

    def __call__(self, seconds, call):
        entry = (self.now + seconds, call)
        self.due.append(entry)
        return lambda: self.due.remove(entry)

    def pass_to(self, now: float) -> None:
        while self.due and self.due[0][0] <= now:
            self.now, call = self.due.pop(0)
            call()
        self.now = now


def test_the_last_of_a_burst_is_shown(capsys):
    """A line that was held back is shown once, two seconds after the last batch or at the close."""
    later = Later()
    lines = Lines(lambda: later.now, later=later)
    for batch, (at, total) in enumerate([(0.0, 1000), (1.0, 2000), (2.0, 5000)]):
        later.pass_to(at)
        lines(report(batch, total))
    later.pass_to(3.9)
    assert len(capsys.readouterr().err.splitlines()) == 1
    later.pass_to(60.0)
    assert capsys.readouterr().err == (
        "millstream: batch 2, 5,000 events (2,000/s), 25% of the input\n"
    )
    lines(report(3, 6000))
    lines(report(4, 7000))
    lines.close()
    assert [text.split(",")[0] for text in capsys.readouterr().err.splitlines()] == [
        "millstream: batch 3",
        "millstream: batch 4",
    ]
    assert later.due == []


def test_an_endless_run_waits_for_input(capsys):
    """A run without end has no line for an empty batch, says once that it waits, and has no word on
    the input's end but on the way there."""
    later = Later()
    lines = Lines(lambda: later.now, endless=True, later=later)
    lines(report(0, 0, events=0, bytes_done=0, bytes_total=0))
    assert capsys.readouterr().err == "millstream: running; waiting for input\n"
    lines(report(1, 1000, bytes_done=50))
    later.pass_to(10.0)
    lines(report(2, 2000, bytes_done=200))
    assert capsys.readouterr().err.splitlines() == [
        "millstream: batch 1, 1,000 events (2,000/s), 25% of the input",
        "millstream: batch 2, 2,000 events (100/s)",
    ]


def test_events_that_wait_at_the_end_are_told(millstream, retail, spark):
    """A run over existing input says how to release waiting events. A stopped run does not, since
    it will continue."""
    spark.result = RunSummary(batches=1, events=3, late=0, dead_letters=0, seconds=0.0, waiting=2)
    said = millstream(*RUN, "--available-now").stderr.splitlines()
    assert said[-1] == "millstream: 2 events wait for the horizon; --final lets them through"
    assert "horizon" not in millstream(*RUN).stderr


def test_timers_that_wait_and_the_end_of_event_time_are_told(millstream, retail, spark):
    """A run over existing input says that open sessions wait. A final run says where event time was
    ended, since earlier events are late from now on."""
    spark.result = RunSummary(batches=1, events=3, late=0, dead_letters=0, seconds=0.0, timers=True)
    said = millstream(*RUN, "--available-now").stderr.splitlines()
    assert said[-1].startswith("millstream: timers wait for event time to go on")
    assert said[-1].endswith("--final fires them")
    spark.result = replace(spark.result, ended=1_772_452_200_000_000)
    said = millstream(*RUN, "--final").stderr.splitlines()
    assert said[-1] == (
        "millstream: event time was ended at 2026-03-02T11:50:00Z: from now on, an event with "
        "a time up to that is late"
    )
    assert "timers wait" not in "".join(said)


def test_a_line_says_what_is_out_of_the_ordinary():
    """Late events, dead letters, waiting events and the horizon appear when there are any."""
    full = report(7, 5, total_late=2, total_dead_letters=1, waiting=1234, horizon=1_000_000)
    assert line(full, 0) == (
        "batch 7, 5 events, 2 late, 1 dead letter, 25% of the input, 1,234 waiting, "
        "horizon 1970-01-01T00:00:01Z"
    )
    assert line(report(7, 5, total_evicted=1), 0).startswith("batch 7, 5 events, 1 slate evicted, ")


def test_moments_and_summaries():
    """Times past the calendar are numbers; a run without time has no rate, nor has one of a few
    events, whose time is Spark's start."""
    assert moment(10**18) == str(10**18)
    assert moment(1) == "1970-01-01T00:00:00.000001Z"
    assert summary(RunSummary(1, 5, 0, 0, 0.0)) == "5 events in 1 batch, 0.0 s"
    assert summary(RunSummary(1, 5, 0, 0, 8.0)) == "5 events in 1 batch, 8.0 s"
    assert summary(RunSummary(1, 5, 0, 0, 8.0, evicted=2)).endswith("8.0 s, 2 slates evicted")
    assert summary(RunSummary(1, 0, 0, 1, 8.0, retried=5)).endswith("5 retried, 1 dead letter")


def test_one_event_is_one_event():
    """And a rate of nothing is not told."""
    assert line(report(7, 1), 0.0).startswith("batch 7, 1 event,")
