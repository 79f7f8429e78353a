"""Which panes of a window are a fair sample of which, and what was lost otherwise.

A *stratum* is what a window has of one block of one node. Where panes are drawn by rank (see
`drawing`) the ranks are a random permutation that knows nothing of the log, so the panes of a rank
under k are a simple random sample without replacement of the stratum, for any k that does not
depend on the ranks. That k is

- of `Error`, the greatest end of a round that the node has completed;
- of `Area(drawn=True)`, what the job asks for, once the node has sent all of it;
- else (`shed="drawn"`, or a window that was closed in the middle) the first rank that was not
  received, among the panes that the node has told of. Those are the beginning of its log, which
  does not depend on ranks; of the others nothing is known.

Panes that were received beyond it (made before the threshold was lowered) are in the answer and
bound it from below, but are left out of the estimate. They are early ones: to count them as they
are and let the sample stand for the rest would give the early panes of the sample too little weight
and bias the estimate wherever a log changes with time.

A window that does not begin with a block has a part of two blocks of each node, perhaps a small one
of which nothing was drawn. If a stratum has under two drawn panes, the node's strata are taken
together, as a sample by the lower of their thresholds: each pane was as likely to be drawn.

What is missing for another reason (shed in order, not fitting, a node that began late or crashed)
was not lost at random: it can only be bounded by the worst case. A pane that did not fit into
memory says that the large ones are lost, so it spoils the sample of its stratum; so does one that
was drawn and then shed in the order of the log: what came is a sample of when there was time; and
a pane with a gap, of which only some is there, nobody knows how much. A pane that was cancelled, as
its window was closed, is as one that was not told of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from millstream.windows.drawing import block_of, rank
from millstream.windows.fidelity import Error, rounds
from millstream.windows.job import Job
from millstream.windows.message import Manifest
from millstream.windows.shedding import drawn_panes

Unit = tuple[str, int]
"""A pane of a node."""
Manifests = Mapping[Unit, Manifest]


@dataclass(frozen=True, slots=True)
class Stratum:
    """Panes of one node of which some were drawn, and those alone received, or counted."""

    units: tuple[Unit, ...]
    sample: frozenset[Unit]
    missing: tuple[Unit, ...]
    records: Mapping[Unit, int] | None
    """How many records each pane has; None: of some that are missing it is not known."""

    @property
    def part(self) -> float:
        return len(self.sample) / len(self.units)


@dataclass(frozen=True, slots=True)
class Layout:
    """What is known of a window's panes."""

    strata: tuple[Stratum, ...]
    """Those that are not received whole."""
    received: frozenset[Unit]
    lost: int
    """Panes that were lost not at random."""
    lost_records: int | None
    """The records of those, records that were too late for panes that had been sent, and records
    whose own time was not believed; None: of some panes nothing is known."""
    unknown: int
    """Panes among the lost ones of which nothing is known."""
    counted: int
    """The records of the lost panes of which something is known, and those that were too late."""

    @property
    def complete(self) -> bool:
        return not self.strata and self.lost_records == 0 and self.unknown == 0


def layout(
    job: Job, nodes: Sequence[str], panes: range, manifests: Manifests, late: int = 0
) -> Layout:
    """The strata of a window, from what its nodes have told; `late` are records that were too late
    for panes that nobody has told of."""
    received = {unit for unit, told in manifests.items() if _received(told)}
    strata = list[Stratum]()
    for node in nodes if job.draws else ():
        samples = [_sample(job, part, received, manifests) for part in _blocks(job, [node], panes)]
        strata += _joined(job, [one for one in samples if one is not None], received, manifests)
    if sum(len(one.sample) == 1 for one in strata) == 1:  # nothing to compare a single pane with
        strata = [one for one in strata if len(one.sample) > 1]
    left_out = {unit for one in strata for unit in one.missing}
    window = [(node, pane) for node in nodes for pane in panes]
    lost = [unit for unit in window if unit not in received and unit not in left_out]
    known = [_records(manifests.get(unit)) for unit in lost]
    late += sum(
        count
        for (node, _), told in manifests.items()
        for pane, count in told["late"].items()
        if int(pane) in panes and node in nodes
    )
    misdated = sum(told.get("misdated", 0) for unit, told in manifests.items() if unit[1] in panes)
    unknown = known.count(None)
    counted = sum(count or 0 for count in known) + late + misdated
    return Layout(
        strata=tuple(strata),
        received=frozenset(received & {*window}),
        lost=len(lost),
        lost_records=None if unknown else counted,
        unknown=unknown,
        counted=counted,
    )


def rounds_done(job: Job, nodes: Sequence[str], panes: range, manifests: Manifests) -> int:
    """How many rounds of `Error` are complete for all nodes; a pane that a node began after is not
    waited for."""
    firsts = [
        _first(job, part, {unit for unit in part if _settled(manifests.get(unit))})
        for part in _blocks(job, nodes, panes)
    ]
    return sum(end <= min(firsts) for end in rounds(job.span.panes))


def _sample(
    job: Job, part: list[Unit], received: set[Unit], manifests: Manifests
) -> tuple[list[Unit], int] | None:
    """The panes of a block that a sample was drawn from, and the threshold of that sample; None:
    there is no sample, or nothing is missing."""
    whys = {unit: told["why"] for unit in part if (told := manifests.get(unit)) is not None}
    if "memory" in whys.values() or any(_torn(manifests.get(unit)) for unit in part):
        return None
    units = [unit for unit in part if whys.get(unit) != "absent"]
    first = _first(job, units, received)
    threshold = max((end for end in _designed(job) if end <= first), default=0)
    if not threshold and not isinstance(job.fidelity, Error):
        if job.shed != "drawn" and "shed" in whys.values():
            return None
        units = [unit for unit in units if whys.get(unit, "cancelled") != "cancelled"]
        threshold = _first(job, units, received)
    missing = any(unit not in received for unit in units)
    return (units, threshold) if threshold and missing else None


def _joined(
    job: Job,
    samples: list[tuple[list[Unit], int]],
    received: set[Unit],
    manifests: Manifests,
) -> list[Stratum]:
    """The strata of a node."""
    strata = [_stratum(job, *one, received, manifests) for one in samples]
    if len(strata) > 1 and any(len(one.sample) < 2 for one in strata):
        units = [unit for of, _ in samples for unit in of]
        lowest = min(threshold for _, threshold in samples)
        strata = [_stratum(job, units, lowest, received, manifests)]
    return [one for one in strata if one.sample]


def _stratum(
    job: Job, units: list[Unit], threshold: int, received: set[Unit], manifests: Manifests
) -> Stratum:
    sample = frozenset(unit for unit in units if _rank(job, unit) < threshold)
    missing = tuple(unit for unit in units if unit not in received)
    records = {unit: _records(manifests.get(unit)) for unit in units}
    known = {unit: count for unit, count in records.items() if count is not None}
    return Stratum(tuple(units), sample, missing, known if len(known) == len(records) else None)


def _designed(job: Job) -> tuple[int, ...]:
    """The ranks at which a sample is known to be complete."""
    if isinstance(job.fidelity, Error):
        return rounds(job.span.panes)
    if job.drawn_part is not None:
        return (drawn_panes(job.drawn_part, job.span.panes),)
    return ()


def _blocks(job: Job, nodes: Sequence[str], panes: range) -> list[list[Unit]]:
    """A window's panes, by node and block."""
    groups = [list(group) for _, group in groupby(panes, lambda p: block_of(p, job.span.panes))]
    return [[(node, pane) for pane in group] for node in nodes for group in groups]


def _first(job: Job, units: Sequence[Unit], received: set[Unit]) -> int:
    """The first rank that was not received."""
    ranks = (_rank(job, unit) for unit in units if unit not in received)
    return min(ranks, default=job.span.panes)


def _rank(job: Job, unit: Unit) -> int:
    return rank(job.seed, *unit, job.span.panes)


def _received(told: Manifest) -> bool:
    return told["mark"] != "lost" and not _torn(told)


def _torn(told: Manifest | None) -> bool:
    """Whether some of its records are gone, nobody knows how many."""
    return told is not None and told.get("gap", 0) != 0


def _settled(told: Manifest | None) -> bool:
    return told is not None and (told["mark"] != "lost" or told["why"] == "absent")


def _records(told: Manifest | None) -> int | None:
    """The records of a pane, whether they are in the answer or were given up; None: not known."""
    if told is None or told["why"] == "absent" or _torn(told):
        return None
    return told["records"] if _received(told) else told["shed"]
