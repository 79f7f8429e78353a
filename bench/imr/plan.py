"""The plan of the experiments: their sizes and parameters. Times are in seconds."""

from __future__ import annotations

from dataclasses import dataclass, field

PARTS = (0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
"""Parts of the data that an answer is made of."""


@dataclass(frozen=True, slots=True)
class Scaling:
    """Figure 7: word count over logs that are there at once."""

    agents: tuple[int, ...] = (1, 2, 3, 4)
    reducers: tuple[int, ...] = (1, 2, 3)
    windows: int = 8
    panes: int = 5
    records: int = 100_000
    """Records of a window, at each node."""


@dataclass(frozen=True, slots=True)
class Timed:
    """Logs that grow as time goes by, in tumbling windows."""

    window: float
    panes: int
    windows: int
    """That are judged; one more is left out, while processes start."""

    @property
    def pane(self) -> float:
        return self.window / self.panes


@dataclass(frozen=True, slots=True)
class Shedding:
    """Figure 8: a node with less and less time for its log."""

    timed: Timed = Timed(6.0, 20, 6)
    burns: tuple[int, ...] = (1, 3)
    """Processes that burn the node's core beside the agent."""
    policies: tuple[str, ...] = ("none", "cancelling", "order", "drawn")
    load: float = 0.75
    """The load of the log, relative to the capacity of an agent with a core to itself."""
    capacity_records: int = 200_000
    """Records of the log that measures the capacity."""


@dataclass(frozen=True, slots=True)
class Failures:
    """Figure 10: servers that are replaced by new ones, so that panes of theirs are gone."""

    agents: int = 10
    replaced: tuple[int, ...] = (1, 2, 4)
    """In each window."""
    timed: Timed = Timed(5.0, 2, 5)
    latency: float = 6.0
    rate: int = 200
    """Records a second of a node."""


@dataclass(frozen=True, slots=True)
class Beside:
    """Figure 13: an agent of lower and lower priority beside other work."""

    nices: tuple[int, ...] = (0, 4, 8)
    timed: Timed = Timed(6.0, 20, 4)
    alone: float = 5.0
    """The duration of the other work's measurement without the agent."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """Figure 9 (c), and the error contract: how long a window takes by what is asked of
    it, over logs that are there at once."""

    agents: int = 4
    windows: int = 2
    panes: int = 20
    records: int = 500_000
    """Records of a window, at each node."""
    part: float = 0.5
    error: float = 0.05


@dataclass(frozen=True, slots=True)
class ClickLatency:
    """Figure 11 (c): how long a window of sessions takes, by the part of the data."""

    agents: int = 4
    users: int = 10_000
    requests: int = 12
    parts: tuple[float, ...] = (0.25, 0.5, 0.75)


@dataclass(frozen=True, slots=True)
class HdfsLatency:
    """Figure 12 (b): the same of a window of block writes."""

    agents: int = 4
    blocks: int = 800
    """Blocks of the cluster in an hour."""
    parts: tuple[float, ...] = (0.25, 0.5, 0.75)


@dataclass(frozen=True, slots=True)
class Clocks:
    """A node that is idle, and one whose clock is an hour ahead."""

    agents: int = 4
    timed: Timed = Timed(3.0, 3, 6)
    ahead: float = 3_600.0
    rate: int = 500
    latency: float = 10.0


@dataclass(frozen=True, slots=True)
class Crowd:
    """Many agents on one root."""

    agents: int = 200
    parents: int = 10
    """Agents that can have children, in the tree."""
    timed: Timed = Timed(10.0, 2, 6)
    rate: int = 10
    """Records a second of a node."""


@dataclass(frozen=True, slots=True)
class Words:
    """Figure 9 (a) and (b)."""

    nodes: int = 10
    panes: int = 10
    lines: int = 300
    """Lines of a pane."""
    windows: int = 5
    parts: tuple[float, ...] = PARTS


@dataclass(frozen=True, slots=True)
class Clicks:
    """Figure 11: sessions of users, whose clicks are served by any node."""

    nodes: int = 10
    windows: int = 4
    users: int = 1_500
    requests: int = 12
    """The largest number of requests of a page. The site of the paper's logs had many pictures."""
    parts: tuple[float, ...] = PARTS


@dataclass(frozen=True, slots=True)
class Hdfs:
    """Figure 12: histograms of block writes."""

    nodes: int = 10
    blocks: int = 300
    """Blocks of the cluster in an hour. Each is written to three nodes."""
    windows: int = 2
    parts: tuple[float, ...] = PARTS


@dataclass(frozen=True, slots=True)
class Covering:
    """Intervals and contracts: simulated, and of panes that are made from records."""

    windows: int = 1_000
    nodes: int = 10
    """And panes: of the windows that are made from records; the simulated ones have as many."""
    panes: int = 20
    real: int = 100
    """Windows whose records are mapped and made into panes."""
    error: float = 0.05
    """The error bound of the contract."""


@dataclass(frozen=True, slots=True)
class Crossover:
    """Windows merged from their panes, or moved on by uncombine."""

    slides: tuple[int, ...] = (2, 3, 4, 5, 6, 8, 10, 20)
    """Slides in a range."""
    keys: int = 500
    nodes: int = 4
    windows: int = 12


@dataclass(frozen=True, slots=True)
class Plan:
    """All of `make bench-imr`."""

    scaling: Scaling = field(default_factory=Scaling)
    shedding: Shedding = field(default_factory=Shedding)
    failures: Failures = field(default_factory=Failures)
    beside: Beside = field(default_factory=Beside)
    waiting: Waiting = field(default_factory=Waiting)
    click_latency: ClickLatency = field(default_factory=ClickLatency)
    hdfs_latency: HdfsLatency = field(default_factory=HdfsLatency)
    clocks: Clocks = field(default_factory=Clocks)
    crowd: Crowd = field(default_factory=Crowd)
    words: Words = field(default_factory=Words)
    clicks: Clicks = field(default_factory=Clicks)
    hdfs: Hdfs = field(default_factory=Hdfs)
    covering: Covering = field(default_factory=Covering)
    crossover: Crossover = field(default_factory=Crossover)


QUICK = Plan(
    scaling=Scaling((1, 2), (1, 2), windows=2, records=10_000),
    shedding=Shedding(Timed(4.0, 10, 2), (2,), ("none", "order", "drawn"), capacity_records=40_000),
    failures=Failures(4, (1,), Timed(4.0, 2, 2), 4.0, 50),
    beside=Beside((0, 10), Timed(4.0, 10, 1), 1.0),
    waiting=Waiting(2, 1, 20, 20_000),
    click_latency=ClickLatency(2, 300, 6, (0.5,)),
    hdfs_latency=HdfsLatency(4, 10, (0.5,)),
    clocks=Clocks(3, Timed(2.0, 2, 2), rate=50),
    crowd=Crowd(6, 2, Timed(2.0, 2, 2)),
    words=Words(4, 10, 40, 1, (0.5, 1.0)),
    clicks=Clicks(4, 1, 40, 6, (0.5, 1.0)),
    hdfs=Hdfs(4, 10, 1, (0.5, 1.0)),
    covering=Covering(40, 4, 10, 3),
    crossover=Crossover((2, 4), 20, 2, 3),
)
