"""A run on a cluster of hosts that faults strike: its driver, its standby, the driver's loss."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from fault_runs.cluster_run import ClusterRun
from fault_runs.processes import Started, wait_until
from fault_runs.s3_proxy import ProxyFaults

PATIENCE = 400.0
LEASE_SECONDS = 5
ONE, OTHER = "driver", "standby"
"""The hosts of drivers."""
TO_THE_END = ("--available-now", "--final")
EVENT_MS = 3.0
"""Milliseconds that a function takes for an event."""
S3_FAILS = ProxyFaults(fails=0.05, loses_answer=0.02)


@dataclass(slots=True)
class Struck:
    """A run that faults strike."""

    running: ClusterRun
    random: Random
    leader: Started
    """The driver that leads, on the host `at`."""
    at: str = ONE
    flags: Sequence[str] = TO_THE_END
    """Those of each start."""
    times: list[float] = field(default_factory=list)
    takeovers: list[float] = field(default_factory=list)
    """Seconds from the end of a lost leader's lease to the first batch of the standby."""
    notes: list[str] = field(default_factory=list)

    def await_commit(self, number: int, driver: Started | None = None) -> None:
        """Wait until the store has commit `number`, or the run has ended normally."""
        driver, running = driver or self.leader, self.running
        if not wait_until(lambda: running.newest_commit() >= number, driver, PATIENCE):
            ended(driver)

    def recovered(self, before: int, began: float, driver: Started | None = None) -> None:
        """Wait for the second commit after a fault, and record how long that took."""
        self.await_commit(before + 2, driver)
        self.times.append(time.monotonic() - began)

    def stand_by(self) -> tuple[str, Started]:
        """Starts a standby on the host that does not lead, and waits until it stands by.

        The leader is held meanwhile, so that it does not finish. Raises RunOver if nobody leads any
        more: then there is nobody to strike.
        """
        host = OTHER if self.at == ONE else ONE
        flags = ("--standby", "--lease", f"{LEASE_SECONDS}s", *self.flags)
        self.running.hold()
        standby = self.running.start(host, *flags, event_ms=EVENT_MS)
        if not wait_until(lambda: "ready to take over" in standby.said(), standby, PATIENCE):
            ended(self.leader)
            ended(standby)
            raise RunOver
        self.running.release()
        self.moment()
        if self.leader.process.poll() is not None:
            ended(standby)
            raise RunOver
        return host, standby

    def moment(self) -> None:
        """Wait for a time drawn by seed, while batches are committed."""
        self.await_commit(self.running.newest_commit() + self.random.randrange(1, 3))
        time.sleep(self.random.uniform(0.0, 1.0))  # a random moment is intended


class RunOver(Exception):
    """The run ended normally before it could be struck."""


def ended(driver: Started) -> None:
    """Wait until a run ends normally."""
    code = driver.wait(PATIENCE)
    if code != 0:
        raise AssertionError(f"the run failed with {code}: {driver.said()}")


def lose_driver(struck: Struck) -> None:
    """Lose the host of the driver: nobody hears from it again. A standby takes over."""
    host, standby = struck.stand_by()
    lost, before = struck.running.cluster.hosts[struck.at], struck.running.newest_commit()
    began = time.monotonic()
    lost.cut_off()
    lost.kill()
    lease_ends = time.monotonic() - struck.running.leader_silence() + LEASE_SECONDS
    last = struck.running.newest_commit()
    struck.recovered(last, began, standby)  # its first commit takes over, the second is a batch
    struck.takeovers.append(time.monotonic() - lease_ends)
    lost.reconnect()  # with nothing on it
    struck.notes.append(f"{struck.at} after commit {before}")
    struck.leader, struck.at = standby, host
