"""Divides the panes of a window into random samples (strata) and panes that were lost otherwise.

A *stratum* is the part of a window in one block of one node. Where panes are drawn by rank (see
`pane_rank`), the ranks are a random permutation that does not depend on the log. So the panes with
a rank under k are a simple random sample without replacement of the stratum, for any k that does
not depend on the ranks. k is

- for `Error`, the greatest end of a round that the node has completed;
- for `Area(drawn=True)`, the number that the job requires, once the node has sent all of it;
- otherwise (`shed="drawn"`, or a window that was closed early) the first rank that was not
  received, among the panes that the node has reported. Those are the beginning of its log, which
  does not depend on ranks. Nothing is known of the others.

Panes that were received beyond k (made before the threshold was lowered) are in the answer and
bound it from below, but are left out of the estimate. They are early panes. If they were counted as
they are, and the sample stood for the rest, the early panes would have too much weight. That would
bias the estimate if a log changes with time.

A window that does not begin with a block has parts of two blocks of each node, perhaps a small one
from which nothing was drawn. If a stratum has under two drawn panes, the node's strata are joined,
as a sample by the lower of their thresholds: each pane was equally likely to be drawn.

Panes missing for another reason (shed in order, too large, a node that began late or crashed) were
not lost at random, and can only be bounded by the worst case. Some of them spoil the sample of
their stratum:

- a pane that did not fit into memory, since it shows that large panes are lost;
- a pane that was drawn and then shed in the order of the log, since what came is a sample of the
  times when the node was not busy;
- a pane with a gap, since an unknown part of it is gone.

A pane of which all records are dead letters is in the sample like any other: these records may be
anything, but the pane was not lost because of what was in it.

A pane that was cancelled because its window was closed is treated as not reported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from millstream.windows.fidelity import Error, rounds
from millstream.windows.panes.message import PaneManifest
from millstream.windows.panes.pane_rank import block_of, rank
from millstream.windows.panes.shedder import drawn_panes

if TYPE_CHECKING:
    from millstream.windows.job import Job

Unit = tuple[str, int]
"""A pane of a node."""
Manifests = Mapping[Unit, PaneManifest]


@dataclass(frozen=True, slots=True)
class Stratum:
    """Panes of one node of which some were drawn. Only the drawn ones are used in the estimate."""

    units: tuple[Unit, ...]
    sample: frozenset[Unit]
    missing: tuple[Unit, ...]
    records: Mapping[Unit, int] | None
    """The number of records in each pane. None: it is not known for some missing panes."""

    @property
    def part(self) -> float:
        return len(self.sample) / len(self.units)


@dataclass(frozen=True, slots=True)
class PaneLayout:
    """The state of a window's panes."""

    strata: tuple[Stratum, ...]
    """The strata that were not received completely."""
    received: frozenset[Unit]
    lost: int
    """Panes that were not lost at random."""
    lost_records: int | None
    """Records in lost panes, records that were too late for panes that had been sent, records whose
    time was implausible, and those of panes that had nothing else than dead letters. None: nothing
    is known of some panes."""
    unknown: int
    """Lost panes of which nothing is known."""
    counted: int
    """The same records as in `lost_records`, without the panes of which nothing is known."""

    @property
    def complete(self) -> bool:
        return not self.strata and self.lost_records == 0 and self.unknown == 0


def layout(
    job: Job, nodes: Sequence[str], panes: range, manifests: Manifests, late: int = 0
) -> PaneLayout:
    """Computes the strata of a window from the manifests of its panes. `late` is the number of
    records that were too late for panes without a manifest."""
    received = {unit for unit, manifest in manifests.items() if _received(manifest)}
    strata = list[Stratum]()
    for node in nodes if job.draws else ():
        samples = [_sample(job, part, received, manifests) for part in _blocks(job, [node], panes)]
        strata += _joined(
            job, [sample for sample in samples if sample is not None], received, manifests
        )
    if (
        sum(len(stratum.sample) == 1 for stratum in strata) == 1
    ):  # nothing to compare a single pane with
        strata = [stratum for stratum in strata if len(stratum.sample) > 1]
    left_out = {unit for stratum in strata for unit in stratum.missing}
    window = [(node, pane) for node in nodes for pane in panes]
    lost = [unit for unit in window if unit not in received and unit not in left_out]
    known = [_records(manifests.get(unit)) for unit in lost]
    unknown = known.count(None)
    counted = sum(count or 0 for count in known) + late + _apart(nodes, panes, manifests)
    return PaneLayout(
        strata=tuple(strata),
        received=frozenset(received & {*window}),
        lost=len(lost),
        lost_records=None if unknown else counted,
        unknown=unknown,
        counted=counted,
    )


def _apart(nodes: Sequence[str], panes: range, manifests: Manifests) -> int:
    """Counts the records that are in no pane: those that were too late, that had an implausible
    time, or that were all that a pane had and could not be read."""
    count = 0
    for (node, pane), manifest in manifests.items():
        if node in nodes:
            count += sum(late for late_for, late in manifest.late.items() if int(late_for) in panes)
        if pane in panes:
            count += manifest.dead if manifest.why == "unreadable" else manifest.misdated
    return count


def rounds_done(job: Job, nodes: Sequence[str], panes: range, manifests: Manifests) -> int:
    """Returns how many rounds of `Error` are complete for all nodes. Panes from before a node began
    are not awaited."""
    firsts = [
        _first(job, part, {unit for unit in part if _settled(manifests.get(unit))})
        for part in _blocks(job, nodes, panes)
    ]
    return sum(end <= min(firsts) for end in rounds(job.span.panes))


def _sample(
    job: Job, part: list[Unit], received: set[Unit], manifests: Manifests
) -> tuple[list[Unit], int] | None:
    """Returns the panes of a block from which a sample was drawn, and its threshold. None: there is
    no sample, or nothing is missing."""
    whys = {unit: manifest.why for unit in part if (manifest := manifests.get(unit)) is not None}
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
    job: Job, samples: list[tuple[list[Unit], int]], received: set[Unit], manifests: Manifests
) -> list[Stratum]:
    """Returns the strata of a node. Joins them if one has under two drawn panes."""
    strata = [_stratum(job, *sample, received, manifests) for sample in samples]
    if len(strata) > 1 and any(len(stratum.sample) < 2 for stratum in strata):
        units = [unit for block, _ in samples for unit in block]
        lowest = min(threshold for _, threshold in samples)
        strata = [_stratum(job, units, lowest, received, manifests)]
    return [stratum for stratum in strata if stratum.sample]


def _stratum(
    job: Job, units: list[Unit], threshold: int, received: set[Unit], manifests: Manifests
) -> Stratum:
    sample = frozenset(unit for unit in units if _rank(job, unit) < threshold)
    missing = tuple(unit for unit in units if unit not in received)
    records = {unit: _records(manifests.get(unit)) for unit in units}
    known = {unit: count for unit, count in records.items() if count is not None}
    return Stratum(tuple(units), sample, missing, known if len(known) == len(records) else None)


def _designed(job: Job) -> tuple[int, ...]:
    """Returns the ranks at which a sample is known to be complete."""
    if isinstance(job.fidelity, Error):
        return rounds(job.span.panes)
    if job.drawn_part is not None:
        return (drawn_panes(job.drawn_part, job.span.panes),)
    return ()


def _blocks(job: Job, nodes: Sequence[str], panes: range) -> list[list[Unit]]:
    """Groups a window's panes by node and block."""
    groups = [list(group) for _, group in groupby(panes, lambda p: block_of(p, job.span.panes))]
    return [[(node, pane) for pane in group] for node in nodes for group in groups]


def _first(job: Job, units: Sequence[Unit], received: set[Unit]) -> int:
    """Returns the first rank that was not received."""
    ranks = (_rank(job, unit) for unit in units if unit not in received)
    return min(ranks, default=job.span.panes)


def _rank(job: Job, unit: Unit) -> int:
    return rank(job.seed, *unit, job.span.panes)


def _received(manifest: PaneManifest) -> bool:
    return (manifest.mark != "lost" or manifest.why == "unreadable") and not _torn(manifest)


def _torn(manifest: PaneManifest | None) -> bool:
    """True if an unknown number of the pane's records are gone."""
    return manifest is not None and manifest.gap != 0


def _settled(manifest: PaneManifest | None) -> bool:
    return manifest is not None and (
        manifest.mark != "lost" or manifest.why in ("absent", "unreadable")
    )


def _records(manifest: PaneManifest | None) -> int | None:
    """Returns the number of records of a pane, in the answer or given up. None: not known."""
    if manifest is None or manifest.why == "absent" or _torn(manifest):
        return None
    return manifest.records if _received(manifest) else manifest.shed
