"""`millstream actions`: shows done, waiting and failed actions, and retries failed ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from millstream.cli.progress import moment
from millstream.cli.store import chosen_store, named_store, store_options
from millstream.counted_nouns import counted, verb
from millstream.errors import CommandError
from millstream.nearest import did_you_mean

if TYPE_CHECKING:
    from millstream.actions.overview import ActionState


@click.group(invoke_without_command=True)
@store_options
@click.pass_context
def actions(ctx: click.Context, store: str | None, app: str | None) -> None:
    """Show the actions: how many were carried out, are waiting and have failed.

    \b
    Examples:
        millstream actions
        millstream actions failed notify
        millstream actions retry notify
    """
    ctx.obj = (store, app)
    if ctx.invoked_subcommand is None:
        with opened_actions(store, app) as chosen:
            _list(chosen, as_lines=False)


@actions.command("list")
@store_options
@click.option("--json", "as_lines", is_flag=True, help="One JSON object a line.")
@click.pass_context
def list_(ctx: click.Context, store: str | None, app: str | None, as_lines: bool) -> None:
    """Show every action: how many are done, waiting, being retried, and failed."""
    with _store(ctx, store, app) as chosen:
        _list(chosen, as_lines)


@actions.command()
@click.argument("action")
@store_options
@click.option("--all", "every", is_flag=True, help="Include those that were put back since.")
@click.pass_context
def failed(
    ctx: click.Context, action: str, store: str | None, app: str | None, every: bool
) -> None:
    """Print the dead letters of ACTION as JSON lines: the event, the error, the tries, the times.

    \b
    Example:
        millstream actions failed notify | jq .error
    """
    from millstream.actions.letters import letters
    from millstream.actions.record import retry_until

    shown = 0
    with _store(ctx, store, app) as chosen:
        path = known_action(chosen, action)
        start = 0 if every else retry_until(path, action)
        for _, letter in letters(path, action, start):
            click.echo(msgspec.json.encode(letter).decode())
            shown += 1
    if not shown:
        click.echo(f"no dead letters of action {action!r}", err=True)


@actions.command()
@click.argument("action")
@store_options
@click.pass_context
def retry(ctx: click.Context, action: str, store: str | None, app: str | None) -> None:
    """Put the dead letters of ACTION back: they are carried out again, under new ids.

    This happens at once if the application runs, else when it is next started. Those that fail
    again become dead letters again.

    \b
    Example:
        millstream actions retry notify
    """
    count = put_back_letters(*_options(ctx, store, app), action)
    if not count:
        click.echo(f"no dead letters of action {action!r}", err=True)
        return
    letters = f"{counted(count, 'dead letter')} {verb(count, 'is', 'are')}"
    click.echo(f"{letters} put back under new ids, which end in -r and a number", err=True)


def put_back_letters(
    store: str | None, app: str | None, action: str, *, dry_run: bool = False
) -> int:
    """Puts the dead letters of an action back. Returns their number."""
    from millstream.actions.retry import put_back
    from millstream.places.place_address import place_at

    named = named_store(store, app)
    place = None if isinstance(named, Path) else place_at(named)
    with opened_actions(store, app) as chosen:
        return put_back(known_action(chosen, action), action, place, dry_run=dry_run)


def _store(ctx: click.Context, store: str | None, app: str | None) -> AbstractContextManager[Path]:
    """Opens the store of the command's own options, or of those before its name."""
    return opened_actions(*_options(ctx, store, app))


@contextmanager
def opened_actions(store: str | None, app: str | None, logs: Sequence[str] = ()) -> Iterator[Path]:
    """Opens a store with the records of its actions and these logs; those of a shared store are
    fetched."""
    from millstream.actions.place_records import fetch_action_records
    from millstream.actions.record import known
    from millstream.log.logs_follower import bring_logs
    from millstream.log.stream_logs import AT_THE_END
    from millstream.model.workflow import FAILED
    from millstream.places.place_address import place_at
    from millstream.stores.shared.mirror_folder import followed_here

    named = named_store(store, app)
    with chosen_store(store, app, logs=logs) as chosen:
        if not isinstance(named, Path) and followed_here(named) != chosen:
            place = place_at(named)
            fetch_action_records(place, chosen)
            for action in known(chosen):
                bring_logs(place, chosen / "logs", [action], AT_THE_END)
                bring_logs(place, chosen / "logs", [f"{action}{FAILED}"])
        yield chosen


def _options(
    ctx: click.Context, store: str | None, app: str | None
) -> tuple[str | None, str | None]:
    return (store, app) if store or app else ctx.obj


def known_action(store: Path, action: str) -> Path:
    """Returns the store if it has this action, else raises CommandError."""
    from millstream.actions.record import known

    names = known(store)
    if action not in names:
        hint = did_you_mean(action, names) if names else "it has none yet"
        raise CommandError(f"{store}: there is no action {action!r}; {hint}")
    return store


def _list(store: Path, as_lines: bool) -> None:
    from millstream.actions.overview import action_states

    states = action_states(store)
    if not states:
        click.echo("no actions", err=True)
    for state in states:
        click.echo(msgspec.json.encode(state).decode() if as_lines else readable(state))


def readable(state: ActionState) -> str:
    """Describes an action in one line, and a record that is being retried in a second."""
    if state.trouble is not None:
        return f"{state.name}: {state.trouble}"
    text = f"{state.name} ({state.address}): {state.done:,} done, {state.waiting:,} waiting"
    text += f", {state.failed:,} failed"
    if state.missed:
        text += f", {state.missed:,} missed"
    if state.retrying is not None:
        stuck = state.retrying
        tries = counted(stuck.tries, "try", "tries")
        text += f"\n  retrying since {moment(stuck.since)}, {tries}: {stuck.error}"
    return text
