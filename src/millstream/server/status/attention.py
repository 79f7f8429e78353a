"""Finds what needs an operator's attention in a status. Pure.

The strip on top of the page shows the result; `/status` has it as `attention`, the most urgent
first. Each kind has one rule and one sentence, which says what is wrong; `panel` says where to
look.
"""

from __future__ import annotations

from collections.abc import Iterator

from millstream.counted_nouns import counted
from millstream.messages.status import Attention, Status

LAG_SECONDS = 30.0
"""A source is reported if its oldest unread record is older than this."""
GROWING_SECONDS = 5.0
"""A source whose lag grows is reported if its oldest unread record is older than this."""
MANY_WAITING = 1_000
"""An action that does not fail is reported if at least this many events wait for it."""
BEHIND_SECONDS = 120.0
"""The horizon is reported if it is further behind the clock than this while events wait for it."""
MOST_NAMES = 3


def attention_of(status: Status, now: int) -> list[Attention]:
    """Returns what needs attention, the most urgent first; `now` is in microseconds since 1970."""
    items = [
        *_troubles(status),
        *_accounts(status),
        *_actions(status),
        *_jobs(status),
        *_mirror(status),
        *_overload(status),
        *_lags(status),
        *_horizon(status, now),
        *_letters(status),
        *_late(status),
    ]
    return sorted(items, key=lambda item: item.level != "bad")


def _troubles(status: Status) -> Iterator[Attention]:
    for trouble in status.troubles:
        text = f"{trouble.name} fails, and batches wait for it: {trouble.error}"
        yield Attention("sink", "bad", text, "workflow")


def _accounts(status: Status) -> Iterator[Attention]:
    residual = status.deliveries.residual
    if residual:
        text = f"{counted(abs(residual), 'delivery', 'deliveries')} not accounted for"
        yield Attention("accounts", "bad", f"{text}: please report it", "workflow")


def _actions(status: Status) -> Iterator[Attention]:
    for action in status.actions:
        where = f"action {action.name!r}"
        waits = f"; {counted(action.waiting, 'event')} waiting" if action.waiting else ""
        if action.trouble:
            yield Attention("action", "bad", f"{where}: {action.trouble}{waits}", "workflow")
        elif action.retrying:
            retry = action.retrying
            tries = counted(retry.tries, "try", "tries")
            text = f"{where} fails, {tries} so far: {retry.error}{waits}"
            yield Attention("action", "bad", text, "workflow")
        elif action.waiting >= MANY_WAITING:
            text = f"{where} has {counted(action.waiting, 'event')} waiting"
            yield Attention("action", "warning", text, "workflow")
        if action.failed:
            gave_up = f"{where} gave up {counted(action.failed, 'event')}"
            text = f"{gave_up}; to put them back: millstream actions retry {action.name}"
            yield Attention("action", "warning", text, "letters")


def _jobs(status: Status) -> Iterator[Attention]:
    for name, job in status.jobs.items():
        where = f"job {name!r}"
        if job.residual:
            text = f"{where}: {counted(abs(job.residual), 'record')} not accounted for"
            yield Attention("accounts", "bad", f"{text}: please report it", "jobs")
        if job.silent:
            text = f"{where}: nothing comes from {_named(job.silent)}, while other nodes go on"
            yield Attention("silent", "bad", text, "jobs")
        dead = [(counts.dead, node) for node, counts in job.nodes.items() if counts.dead]
        if dead:
            records = counted(sum(count for count, _ in dead), "dead record")
            text = f"{where}: {records} at its agents ({_ranked(dead)})"
            yield Attention("dead letters", "warning", text, "jobs")
        for warning in job.warnings:
            yield Attention("late", "warning", f"{where}: {warning}", "jobs")


def _mirror(status: Status) -> Iterator[Attention]:
    mirror = status.mirror
    if mirror is not None and mirror.error:
        text = f"answers are {mirror.asked_age:.0f} s old, the store does not answer"
        yield Attention("mirror", "bad", f"{text}: {mirror.error}", "workflow")


def _overload(status: Status) -> Iterator[Attention]:
    held, pressure = status.intake.held, status.intake.pressure
    if pressure >= 1.0:
        text = f"overload: sources are stopped, {counted(held, 'event')} held back"
        yield Attention("overload", "warning", text, "workflow")


def _lags(status: Status) -> Iterator[Attention]:
    for source in status.sources:
        lag = source.lag_seconds
        grows = source.lag_growth is not None and source.lag_growth > 0
        if lag is not None and lag > (GROWING_SECONDS if grows else LAG_SECONDS):
            events = source.lag_events
            more = "" if events is None else f", {counted(events, 'event')}"
            if grows:
                more += f", and falls behind by {source.lag_growth:,.0f} events a second"
            text = f"source {source.name!r} is {_span(lag)} behind{more}"
            yield Attention("lag", "warning", text, "workflow")


def _horizon(status: Status, now: int) -> Iterator[Attention]:
    if status.order != "event-time" or not status.waiting or status.horizon is None:
        return
    behind = (now - status.horizon) / 1e6
    if behind > BEHIND_SECONDS and status.running:
        text = f"{counted(status.waiting, 'event')} waiting for the horizon"
        yield Attention("horizon", "warning", f"{text}, which is {_span(behind)} back", "workflow")


def _letters(status: Status) -> Iterator[Attention]:
    left = status.letters_left.dead_letters
    if left:
        failed = [(function.dead_letters, function.name) for function in status.functions]
        failed += [(source.dead_letters, source.name) for source in status.sources]
        failed = [(count, name) for count, name in failed if count]
        by = f" ({_ranked(failed)})" if failed else ""
        text = f"{counted(left, 'dead letter')}"
        gone = status.dead_letters - left
        text += f" left of {status.dead_letters:,}{by}" if gone > 0 else by
        yield Attention("dead letters", "warning", text, "letters")


def _late(status: Status) -> Iterator[Attention]:
    left = status.letters_left.late
    if left:
        text = f"{counted(left, 'event')} came too late for event time"
        yield Attention("late", "warning", text, "tail=late")


def _ranked(counts: list[tuple[int, str]]) -> str:
    """
    >>> _ranked([(1, "a"), (1200, "b")])
    'b 1,200, a 1'
    """
    return _named([f"{name} {count:,}" for count, name in sorted(counts, reverse=True)])


def _named(names: list[str]) -> str:
    """
    >>> _named(["a", "b", "c", "d", "e"])
    'a, b, c and 2 more'
    """
    more = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def _span(seconds: float) -> str:
    """
    >>> _span(45), _span(600), _span(90_000)
    ('45 s', '10 min', '25 h')
    """
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.0f} h"
