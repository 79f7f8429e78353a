"""Finds the hosts of a context's executors, and waits for the executors at the start."""

from __future__ import annotations

import socket
import time
from collections import Counter
from collections.abc import Iterable

from py4j.protocol import Py4JError
from pyspark import SparkContext

from millstream.errors import RunError
from millstream.settings.cluster_options import MasterKind

PATIENCE: dict[MasterKind, float] = {"standalone": 60.0, "yarn": 300.0, "kubernetes": 300.0}
"""Seconds to wait for the first executor; containers may have to fetch an image."""
SETTLED_SECONDS = 1.0
"""Seconds without a new executor after which the present ones are taken to be all."""
LOOK_SECONDS = 0.05


class Executors:
    """The executors of a context, by host."""

    def __init__(self, context: SparkContext) -> None:
        self._context = context
        self._driver = context.getConf().get("spark.driver.host", "")

    def known(self) -> frozenset[str]:
        """Returns the addresses of the block managers, including the driver's.

        An address is never reused.
        """
        assert self._context._jsc is not None
        addresses = self._context._jsc.sc().getExecutorMemoryStatus().keys().mkString(",")
        return frozenset(addresses.split(","))

    def hosts(self, known: frozenset[str]) -> dict[str, int]:
        """Returns how many executors each host has."""
        counts = Counter(address.rpartition(":")[0] for address in known)
        counts[self._driver or ""] -= 1
        return {host: count for host, count in counts.items() if count > 0}

    def wait(self, kind: MasterKind, master: str) -> dict[str, int]:
        """Waits for the executors; returns how many each host has."""
        began = last = time.monotonic()
        known: frozenset[str] = frozenset()
        while not known or time.monotonic() - last < SETTLED_SECONDS or not self.hosts(known):
            now = time.monotonic()
            try:
                present = self.known()
            except (Py4JError, OSError):  # Spark has given up on the master
                raise self._none_came(master, now - began) from None
            if present != known:
                known, last = present, now
            if not self.hosts(known) and now - began > PATIENCE[kind]:
                raise self._none_came(master, now - began)
            time.sleep(LOOK_SECONDS)
        return self.hosts(known)

    def _none_came(self, master: str, seconds: float) -> RunError:
        return RunError(
            f"no executor of {master} came in {seconds:.0f} s: its workers must have a core and as "
            "much memory as spark.executor.memory free (--memory is the default), reach the driver "
            f"at {self._driver} (--listen), and have the same secret and encryption "
            "(--secret-file); the logs of the master and of the executors say more"
        )


def check_local(hosts: Iterable[str], store: object) -> None:
    """Raises RunError for executors on other machines, which cannot see a local store."""
    for host in hosts:
        if not _is_here(host):
            raise RunError(
                f"the store {store} is a folder of this machine, and executors run on {host}: give "
                "a shared store, such as --store s3://BUCKET/PREFIX, or a cluster whose workers "
                "are all on this machine"
            )


def _is_here(host: str) -> bool:
    """True if a host is this machine: only then can a socket be bound to its address."""
    try:
        for family, kind, protocol, _, address in socket.getaddrinfo(
            host.strip("[]"), 0, type=socket.SOCK_STREAM
        ):
            with socket.socket(family, kind, protocol) as probe:
                probe.bind(address)
                return True
    except OSError:
        pass
    return False
