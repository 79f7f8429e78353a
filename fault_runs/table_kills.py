"""A database, or the driver that writes to it, is killed at random moments.

After the last batch the table must equal the slates: no slate lost, none too many, none outdated.
The database is a real one (`scripts/postgres-server`, `scripts/cassandra-server`); the driver is a
process of its own, without Spark, which does not matter for a sink.
"""

from __future__ import annotations

import json
import os
import threading
import time
from contextlib import closing
from pathlib import Path
from random import Random

from fault_runs.database_servers import (
    DatabaseServer,
    cassandra_server,
    postgres_server,
    running,
)
from fault_runs.processes import Started, seconds_to_commit, start
from fault_runs.result import Result
from fault_runs.scenario import Context, Run, Scenario
from fault_runs.table_app import Record, Totals, orders, totals
from millstream.databases import cassandra, postgres
from millstream.databases.options import database_options
from millstream.sources.address import parse_address
from millstream.stores.reader import SlateReader

KILLS = 10
"""Kills in one run."""
HANDFUL, PAUSE = 20, 0.05
"""The number of orders that are written at a time, and the seconds between two such writes."""
END_SECONDS = 300.0
KINDS = {
    "postgres": (postgres_server, "postgres:totals?{}&database=postgres"),
    "cassandra": (cassandra_server, "cassandra:shop.totals?{}&replication=1&consistency=ONE"),
}
"""For each database: its server, and the address of the sink."""


def _run(name: str, kind: str, kills: int) -> Run:
    def run(seed: int, folder: Path, context: Context) -> Result:
        make_server, address = KINDS[kind]
        return _killed(name, seed, folder, make_server(folder / "database"), address, kills)

    return run


class Writer(threading.Thread):
    """Writes orders to files until it is stopped, so that there is always a batch to process."""

    def __init__(self, folder: Path, random: Random) -> None:
        super().__init__(daemon=True)
        self.stop = threading.Event()
        self.given: list[Record] = []
        self._folder = folder
        self._random = random
        folder.mkdir()

    def run(self) -> None:
        while not self.stop.wait(PAUSE):
            fresh = orders(self._random, len(self.given), HANDFUL)
            path = self._folder / f"{len(self.given):09d}.jsonl"
            hidden = path.with_name(f".{path.name}")
            hidden.write_text("".join(json.dumps(order) + "\n" for order in fresh))
            hidden.rename(path)
            self.given += fresh


def _killed(
    fault: str, seed: int, folder: Path, server: DatabaseServer, address: str, kills: int
) -> Result:
    random, times = Random(seed), list[float]()
    struck = {"database": 0, "driver": 0}
    store, writer = folder / "store", Writer(folder / "in", Random(seed))
    with running(server):
        os.environ.update(server.environ)
        table_address = address.format(server.options)
        arguments = ["-m", "fault_runs.table_app", str(folder), table_address]
        writer.start()
        driver = start([*arguments, "follow"], folder / "said")
        try:
            seconds_to_commit(store, driver)
            for _ in range(kills):
                time.sleep(random.uniform(0.0, 1.0))  # a random moment is intended
                if driver.process.poll() is not None:
                    raise AssertionError(f"the driver has ended by itself: {driver.said()}")
                victim = random.choice(["database", "driver"])
                struck[victim] += 1
                if victim == "driver":
                    driver.kill()
                    driver = start([*arguments, "follow"], folder / "said")
                else:
                    server.kill()
                    time.sleep(random.uniform(0.0, 0.5))
                    server.restart()
                if random.random() < 0.7:  # otherwise the next kill strikes during the recovery
                    times.append(_seconds_to_commits(store, driver))
        finally:
            driver.kill()
            writer.stop.set()
        writer.join()
        last = start([*arguments, "last"], folder / "said-last")
        try:
            code = last.wait(END_SECONDS)
        finally:
            last.kill()
        table = _table(table_address)
    want, slates = totals(writer.given), _slates(folder)
    lost = sum(1 for key, slate in want.items() if table.get(key) != slate)
    note = f"{struck['database']} of the database, {struck['driver']} of the driver"
    problem = "" if code == 0 else f"the last run ended with {code}: {last.said()[-300:]}"
    if slates != want:
        problem = problem or "the slates themselves are not what the orders mean"
    doubled = len(set(table) - set(want))
    return Result(fault, seed, lost, doubled, tuple(times), note, kills, problem)


def _seconds_to_commits(store: Path, driver: Started) -> float:
    """The seconds to the third commit: by then the sink has got a batch that began after now."""
    began = time.monotonic()
    for _ in range(3):
        if seconds_to_commit(store, driver) is None:
            raise AssertionError(f"the driver has ended by itself: {driver.said()}")
    return time.monotonic() - began


def _slates(folder: Path) -> Totals:
    with closing(SlateReader(folder / "store")) as reader:
        return {stored.key: stored.value for stored in reader.scan("total")}


def _table(text: str) -> Totals:
    """The table as another program reads it."""
    address = parse_address(text)
    options = database_options(address.format, address.path, dict(address.options), "table")
    if address.format == "postgres":
        with closing(postgres.connect(options)) as connection:
            return dict(connection.execute("SELECT key, slate FROM totals").fetchall())
    with closing(cassandra.connect(options)) as opened:
        found = opened.session.execute("SELECT key, slate FROM shop.totals")
        return {key: json.loads(slate) for key, slate in found}


def table_scenarios(kills: int = KILLS) -> tuple[Scenario, ...]:
    """A scenario for each database, with `kills` kills in a run."""
    return tuple(
        Scenario(
            name := f"{kind}-killed",
            f"{shown} or the driver killed: after the last batch the table equals the slates",
            _run(name, kind, kills),
            least=30,
        )
        for kind, shown in (("postgres", "PostgreSQL"), ("cassandra", "Cassandra"))
    )
