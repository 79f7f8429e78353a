"""The plan of the experiments: their sizes and parameters. Times are in seconds."""

from __future__ import annotations

from dataclasses import dataclass

WORKERS = (1, 2, 3)
KEYS = (1, 2, 4, 8)
TASKS = 6
"""Tasks of a batch's stages, whatever the workers: with few keys some have nothing to do, and more
tasks than workers let Spark give each worker its part."""
MEMORY = "512m"
"""The memory of the driver's JVM and of each executor's."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Workers killed half way through a run over all of the small data."""

    workers: int
    killed: int
    keys: int

    @property
    def what(self) -> str:
        return f"{self.workers} workers, {self.killed} killed, {self.keys} keys"


@dataclass(frozen=True, slots=True)
class Return:
    """The long run in which a worker of two is killed and comes back: shares of the words that
    must be committed before the one and before the other."""

    words: int
    keys: int
    kill_at: float
    return_at: float
    warm: float
    """Left out of the rates after the first commit, while Spark warms up."""
    settle: float
    """Left out after the worker is known to the master, while its executor starts and warms up."""


@dataclass(frozen=True, slots=True)
class Files:
    """Runs over words that are all there at once."""

    small: int = 200_000
    """Words of the paper's "10 MB"."""
    large: int = 2_000_000
    """Words of the paper's "100 MB"."""
    workers: tuple[int, ...] = WORKERS
    keys: tuple[int, ...] = KEYS
    large_runs: tuple[tuple[int, int], ...] = tuple((workers, 1) for workers in WORKERS)
    """Workers and keys of the runs over the large data."""


@dataclass(frozen=True, slots=True)
class Http:
    """Words that are sent: at the paper's rates, and as fast as they are accepted."""

    words: int = 200_000
    """Of the file from which they are sent."""
    workers: tuple[int, ...] = WORKERS
    keys: tuple[int, ...] = KEYS
    rates: tuple[int, ...] = (500, 1_000)
    """Words a second, as the paper has them."""
    seconds: float = 5.0
    """The duration of each rate."""
    every: float = 0.05
    """Seconds between two requests."""
    warm_up: int = 100
    """Words of a round of warming up."""
    at_once: int = 120_000
    """Events for Eleven and Three that are sent as fast as they are accepted."""

    def burst(self, keys: int) -> int:
        """Words that make `at_once` events, three of four words being numbers."""
        return max(1_000, self.at_once * 4 // (3 * 2 * keys))


@dataclass(frozen=True, slots=True)
class Faults:
    """Runs half way through which workers are killed for good."""

    words: int = 200_000
    faults: tuple[Fault, ...] = (
        Fault(2, 1, 4),
        Fault(2, 1, 8),
        Fault(3, 1, 8),
        Fault(3, 2, 8),
    )
    batch: str = "2MiB"
    """The most that a batch takes, so that some batches end before the fault and some after."""


@dataclass(frozen=True, slots=True)
class Plan:
    """All of `make bench-s4`."""

    files: Files = Files()
    http: Http = Http()
    fault: Faults = Faults()
    returned: Return = Return(1_000_000, 4, 0.3, 0.5, 5.0, 10.0)


QUICK = Plan(
    files=Files(60_000, 80_000, (2,), (1, 2), ((2, 1),)),
    http=Http(60_000, (2,), (1, 2), seconds=2.0, at_once=24_000),
    fault=Faults(60_000, (Fault(2, 1, 2),)),
    returned=Return(160_000, 2, 0.3, 0.5, 1.0, 3.0),
)
