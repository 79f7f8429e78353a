"""The events that the runs over the ledger count as lost and doubled."""

from __future__ import annotations

from random import Random

from fault_runs.ledger import differing, entries, events_of, ledger
from fault_runs.outcome import Outcome, reference_over
from millstream.model.event import Event

APP = ledger("entries")
GIVEN = events_of("entries", entries(Random(1), 40))
LOG = "the log of balances"


def ideal() -> Outcome:
    found = reference_over(APP, GIVEN, [])
    found.streams[LOG] = [event._replace(stream=LOG) for event in found.streams["balances"]]
    return found


def counted(found: Outcome, *refused: tuple[str, str, int]) -> tuple[int, int]:
    difference = differing(APP, GIVEN, found, refused)
    return difference.lost, difference.doubled


def test_the_reference_itself_differs_in_nothing() -> None:
    """Nothing lost, nothing doubled."""
    assert counted(ideal()) == (0, 0)


def test_the_sink_and_the_log_are_both_looked_at() -> None:
    """A row that is missing in the log counts though the sink has it, and the other way round."""
    found = ideal()
    found.streams[LOG].pop()
    found.streams["balances"].append(found.streams["balances"][0])
    assert counted(found) == (1, 1)


def test_a_line_that_is_no_record_must_be_a_dead_letter_once() -> None:
    """Missing it is lost; a dead letter of a line that is a record is doubled."""
    found = ideal()
    assert counted(found, ("entries", "000000.json", 3)) == (1, 0)
    found.letters += [("", "entries", "000000.json", 3), ("", "entries", "000000.json", 4)]
    assert counted(found, ("entries", "000000.json", 3)) == (0, 1)


def test_a_late_event_is_left_out_of_the_reference_once() -> None:
    """An event that is late and processed is doubled, and so is one that was never given."""
    found = ideal()
    found.late.append(GIVEN[3])
    assert counted(found)[1] > 0
    found = ideal()
    found.late.append(Event("entries", 1, "nobody", {"id": -1}))
    assert counted(found) == (0, 1)
