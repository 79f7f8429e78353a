"""Pours a streaming DataFrame, of any source that Spark can read, into an application's source.

    df.writeStream.foreachBatch(ms.spark.into(app, "clicks", store="clicks-store")).start()

GUARANTEES
----------
- Each micro-batch is taken in exactly once, by the query's id and the batch's id, over restarts of
  the query and of the process, and however often Spark repeats the batch.
- A call returns when the application has committed the micro-batch, so Spark's own commit of it
  comes after ours. If the application fails, the call raises and the query ends; a new start
  continues, and nothing is lost or duplicated.
- Calling `into` runs nothing. The first micro-batch opens the store and starts the driver, in a
  thread of this process, on the query's SparkContext. When the last query that pours ends, the
  driver is stopped and the store closed.

All pours of this process into the same store share one run of the application.
"""

from __future__ import annotations

import os
import sys
import threading
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from millstream.driver.driver import OnReport
from millstream.driver.pour.background_run import BackgroundRun
from millstream.driver.pour.place_pour_storage import pour_storage_of
from millstream.driver.pour.poured_log import PouredLog
from millstream.driver.startup.addresses import addresses
from millstream.errors import DefinitionError, MillstreamError, RunError, StoreError
from millstream.log.retention import Retention
from millstream.model.app import AppDefinition
from millstream.nearest import did_you_mean
from millstream.settings.settings import Settings, resolve
from millstream.sources.address import LOG
from millstream.spark import runner
from millstream.spark.poured_rows import RowColumns, pieces_of
from millstream.stores.home import log_of

QUERY_ID = "sql.streaming.queryId"
OF_SPARK = {
    "available_now": "use .trigger(availableNow=True) of the query",
    "final": "run `millstream run APP --final` when the query has ended",
    "master": "it runs on the query's SparkContext",
    "memory": "it runs on the query's SparkContext",
}
"""Settings of `app.run` that the query determines here."""
STOPPED = (
    "the query was stopped before the batch was in the log; its next start repeats the batch "
    "(py4j.protocol.Py4JJavaError: An error occurred while calling Spark: "
    "java.lang.InterruptedException)"
)
"""Spark recognises by the words in brackets that its own stop() caused the error, and ends the
query without an error. In a text as long as that of the original error, Spark's search for these
words overflows the stack."""


def into(
    app: AppDefinition,
    source: str,
    *,
    store: str | Path | None = None,
    key: str | None = None,
    ts: str | None = None,
    value: str | None = None,
    json: str | None = None,
    **settings: Any,
) -> Pour:
    """Returns a function for `foreachBatch` that pours each micro-batch into a source.

    By default a record is the whole row, as an object, and the source's own key and ts pick fields
    of it. `value` names a column that is the record instead; `json` names one that holds the record
    as JSON text. `key` and `ts` name columns whose values are put into the record, in the fields
    that the source picks. The settings are those of `app.run`; with `serve=True` a server runs
    beside the application.
    """
    for name in OF_SPARK.keys() & settings.keys():
        raise DefinitionError(f"into({name}=) is not a setting here: {OF_SPARK[name]}")
    if not isinstance(app, AppDefinition):
        raise DefinitionError(f"into(): the first argument must be an App; got {app!r}")
    workflow = app.checked()
    known = {each.name: each for each in workflow.sources}
    if source not in known:
        raise DefinitionError(
            f"into({source!r}): it is not a source of app {app.name!r}; "
            f"{did_you_mean(str(source), known)}"
        )
    columns = RowColumns(known[source], key, ts, value, json)
    arguments = {"store": store, **settings}
    lasting = {"available_now": False, "final": False}
    resolved = resolve(app, environ=os.environ, flags=lasting, code=arguments, called="into")
    storage, given = resolved.storage, resolved.addresses.sources
    address = addresses(given, storage.store)[source]
    if address.format != LOG:
        raise DefinitionError(
            f"into({source!r}): the settings say that it reads {given[source]}, and "
            f"what is poured goes to its event log; remove the address of {source!r} from them"
        )
    if storage.place and Path(address.path) != log_of(storage.store.absolute(), source):
        raise DefinitionError(
            f"into({source!r}): the settings say that it reads {given[source]}, and "
            f"what is poured into {storage.place} goes to the log that is there; remove the "
            f"address of {source!r} from them"
        )
    return Pour(app, source, columns, resolved, Path(address.path))


class Pour:
    """Takes in the micro-batches of a query. Also a context manager, which closes it."""

    def __init__(
        self, app: AppDefinition, source: str, columns: RowColumns, settings: Settings, log: Path
    ) -> None:
        self._app = app
        self._source = source
        self._columns = columns
        self._settings = settings
        self._path = log
        self._lock = threading.Lock()
        """Held while a micro-batch is taken in."""
        self._run: BackgroundRun | None = None
        self._log: PouredLog | None = None
        self._queries: set[str] = set()
        """The names of the threads of the queries that pour with this object."""
        self._called_by_name = False
        """True if a caller other than a query pours; its end cannot be waited for."""
        self._closed = False

    def __call__(self, df: DataFrame, batch_id: int, query: str | None = None) -> None:
        """Takes a micro-batch in, unless it was taken in before; it is committed on return.

        `query` names the caller if it is not a streaming query: each name has its own sequence of
        batch numbers.
        """
        context = _context_of(df)
        if query:
            self._called_by_name = True
        else:
            query = self._followed_query(context)
        with self._lock:
            if self._closed:
                raise RunError(f"{self._where}: it was closed; make a new one with into()")
            try:
                run = self._opened(context)
                run.wait_for(self._source, self._append(df, query, batch_id))
            except MillstreamError as error:
                self._let_go()  # the next call reopens everything, and checks what is there
                raise RunError(f"{self._where}, batch {batch_id}: {error}") from None
            except BaseException:
                self._let_go()
                raise

    def close(self) -> None:
        """Releases the store.

        A micro-batch that is being taken in may fail; the next start of its query repeats it.
        """
        self._closed = True
        _shared_runs.stop(self)
        with self._lock:
            self._let_go()

    def __enter__(self) -> Pour:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise RunError(
            f"{self._where}: it runs in the process of Spark's driver and cannot be sent to "
            "another, as Spark Connect does; use a session with a SparkContext of its own, such as "
            "SparkSession.builder.master('local[*]')"
        )

    @property
    def _where(self) -> str:
        return f"into({self._source!r}) of app {self._app.name!r}"

    def _opened(self, context: SparkContext) -> BackgroundRun:
        run = _shared_runs.joined(self, self._app, self._settings, context)
        if run is not self._run or self._log is None:
            self._close_log()
            self._run = run
            keep = Retention(self._settings.logs.retain_age, self._settings.logs.retain_bytes)
            place, store = self._settings.storage.place, self._settings.storage.store
            storage = pour_storage_of(place, store, self._source, self._path, keep)
            self._log = PouredLog(storage, self._source)
        return run

    def _append(self, df: DataFrame, query: str, batch: int) -> list[int]:
        """Appends the micro-batch to the log unless it is there; returns the end of the log."""
        log = self._log
        assert log is not None
        if not log.has(query, batch):
            try:
                pieces = pieces_of(df, self._columns, log.storage.place, log.storage.target)
            except (PySparkException, Py4JError) as error:
                text = str(error)
                if "No module named 'millstream'" in text:
                    raise _no_millstream(df.sparkSession.sparkContext) from None
                if "InterruptedException" in text or "cancelled job group" in text:
                    raise RunError(STOPPED) from None
                raise
            log.pour(query, batch, pieces)
        return log.end

    def _followed_query(self, context: SparkContext) -> str:
        """Returns the id of the query that runs in this thread, and starts to wait for its end."""
        query = context.getLocalProperty(QUERY_ID)
        if query is None:
            raise RunError(
                f"{self._where}: it must be called by foreachBatch of a streaming query, whose id "
                "makes a batch known; otherwise give the batches a name, as in "
                "pour(df, 0, query='history')"
            )
        jvm = context._jvm
        assert jvm is not None
        thread = jvm.java.lang.Thread.currentThread()
        name = str(thread.getName())
        with self._lock:
            if name not in self._queries:
                self._queries.add(name)
                wait = threading.Thread(
                    target=self._wait_for_end, args=(thread, name), name="millstream-query"
                )
                wait.daemon = True
                wait.start()
        return str(query)

    def _wait_for_end(self, thread: Any, name: str) -> None:
        """Releases the store when the last query has ended, unless other callers pour too.

        Runs in a background thread.
        """
        try:
            thread.join()
        except Exception:
            pass  # the JVM is gone, and the query with it
        with self._lock:
            self._queries.discard(name)
            if not self._queries and not self._called_by_name:
                self._let_go()

    def _let_go(self) -> None:
        self._close_log()
        self._run = None
        _shared_runs.leave(self)

    def _close_log(self) -> None:
        if self._log is not None:
            self._log.close()
            self._log = None


@dataclass(slots=True)
class _SharedRun:
    """A run of an application, and the pours that use it."""

    app: AppDefinition
    settings: Settings
    context: SparkContext
    run: BackgroundRun
    pours: set[Pour] = field(default_factory=set)


class _SharedRuns:
    """The runs of this process, by store.

    Opening a store waits until an earlier run has closed it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs: dict[Path, _SharedRun] = {}

    def joined(
        self, pour: Pour, app: AppDefinition, settings: Settings, context: SparkContext
    ) -> BackgroundRun:
        """Returns the run of the store, and starts one if there is none.

        If the pour's previous run was ended by an error, raises that error, once.
        """
        path = settings.storage.store.resolve()
        with self._lock:
            shared = self._runs.get(path)
            if shared is not None and (shared.run.ended or shared.context is not context):
                del self._runs[path]
                shared.run.close()
                if pour in shared.pours:
                    shared.run.check()
                shared = None
            if shared is None:
                shared = _SharedRun(app, settings, context, _run_of(app, settings, context))
                shared.run.start()
                self._runs[path] = shared
            if shared.app is not app or shared.settings != settings:
                raise StoreError(
                    f"{settings.storage.store}: this process pours into it already, for another "
                    "App or with other settings; stop that query, or call close() of what into() "
                    "gave"
                )
            shared.pours.add(pour)
            return shared.run

    def stop(self, pour: Pour) -> None:
        """Asks a run to stop if no other pour uses it."""
        for shared in list(self._runs.values()):
            if shared.pours == {pour}:
                shared.run.stop()

    def leave(self, pour: Pour) -> None:
        """Removes a pour from its run; the last one closes the run."""
        with self._lock:
            for path, shared in list(self._runs.items()):
                shared.pours.discard(pour)
                if not shared.pours:
                    del self._runs[path]
                    shared.run.close()


_shared_runs = _SharedRuns()


def _run_of(app: AppDefinition, settings: Settings, context: SparkContext) -> BackgroundRun:
    """Returns a run of the application as `millstream run` does it, without the display."""

    def work(*, report: OnReport, stop: threading.Event, ready: Any) -> None:
        from millstream.notices import say
        from millstream.service.app_description import describe_app
        from millstream.service.run_server import RunServer
        from millstream.service.server_settings import options_of

        with ExitStack() as open_:
            serving = (
                open_.enter_context(RunServer(options_of(settings))) if settings.serve else None
            )

            def begin() -> None:
                describe_app(app, settings)
                if serving is not None:
                    serving.start()
                ready()

            runner.run(app, settings, report, context=context, stop=stop, ready=begin, say=say)

    return BackgroundRun(settings.storage.store, work)


def _context_of(df: DataFrame) -> SparkContext:
    if not hasattr(df, "_jdf"):
        raise RunError(
            "into(): a micro-batch must be a DataFrame of a session with its own SparkContext; "
            f"got {type(df).__module__}.{type(df).__name__}: Spark Connect is not supported"
        )
    return df.sparkSession.sparkContext


def _no_millstream(context: SparkContext) -> RunError:
    return RunError(
        f"Spark's Python workers run {context.pythonExec}, which has no module millstream; set "
        f"PYSPARK_PYTHON={sys.executable}, or install Millstream there, and start again"
    )
