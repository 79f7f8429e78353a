"""`millstream actions`: what was carried out, what waits, what failed, and trying that again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from millstream.cli.progress import moment
from millstream.cli.store import chosen_store, store_options
from millstream.errors import CommandError
from millstream.nearest import did_you_mean

if TYPE_CHECKING:
    from millstream.actions.overview import ActionState


@click.group(invoke_without_command=True)
@store_options
@click.pass_context
def actions(ctx: click.Context, store: Path | None, app: str | None) -> None:
    """Show what was done outside: actions carried out, waiting and failed.

    \b
    Examples:
        millstream actions
        millstream actions failed notify
        millstream actions retry notify
    """
    ctx.obj = (store, app)
    if ctx.invoked_subcommand is None:
        _list(chosen_store(store, app), as_lines=False)


@actions.command("list")
@store_options
@click.option("--json", "as_lines", is_flag=True, help="One JSON object a line.")
@click.pass_context
def list_(ctx: click.Context, store: Path | None, app: str | None, as_lines: bool) -> None:
    """Show every action: how many are done, wait, are being retried, have failed."""
    _list(_store(ctx, store, app), as_lines)


@actions.command()
@click.argument("action")
@store_options
@click.option("--all", "every", is_flag=True, help="Those too that were put back since.")
@click.pass_context
def failed(
    ctx: click.Context, action: str, store: Path | None, app: str | None, every: bool
) -> None:
    """Print the dead letters of ACTION as JSON lines: the event, the error, the tries, the times.

    \b
    Example:
        millstream actions failed notify | jq .error
    """
    from millstream.actions.letters import letters
    from millstream.actions.record import retry_until

    path = _known(_store(ctx, store, app), action)
    start = 0 if every else retry_until(path, action)
    shown = 0
    for _, letter in letters(path, action, start):
        click.echo(msgspec.json.encode(letter).decode())
        shown += 1
    if not shown:
        click.echo(f"no dead letters of action {action!r}", err=True)


@actions.command()
@click.argument("action")
@store_options
@click.pass_context
def retry(ctx: click.Context, action: str, store: Path | None, app: str | None) -> None:
    """Put the dead letters of ACTION back: they are carried out again, under new ids.

    At once if the application runs, else when it is next started. Those that fail again are dead
    letters again.

    \b
    Example:
        millstream actions retry notify
    """
    from millstream.actions.letters import failed_log
    from millstream.actions.overview import action_state, records_of
    from millstream.actions.record import ask_retry

    path = _known(_store(ctx, store, app), action)
    count = action_state(path, action).failed
    if not count:
        click.echo(f"no dead letters of action {action!r}", err=True)
        return
    ask_retry(path, action, records_of(failed_log(path, action)))
    what = "1 dead letter is" if count == 1 else f"{count:,} dead letters are"
    click.echo(f"{what} put back; under new ids, which end in -r and a number", err=True)


def _store(ctx: click.Context, store: Path | None, app: str | None) -> Path:
    """The store of the command's own options, or of those before its name."""
    return chosen_store(*((store, app) if store or app else ctx.obj))


def _known(store: Path, action: str) -> Path:
    from millstream.actions.record import known

    names = known(store)
    if action not in names:
        hint = did_you_mean(action, names) if names else "it has none yet"
        raise CommandError(f"{store}: there is no action {action!r}; {hint}")
    return store


def _list(store: Path, as_lines: bool) -> None:
    from millstream.actions.overview import action_states

    found = action_states(store)
    if not found:
        click.echo("no actions", err=True)
    for state in found:
        click.echo(msgspec.json.encode(state).decode() if as_lines else readable(state))


def readable(state: ActionState) -> str:
    """An action in a line, and one more for what it is stuck at."""
    if state.trouble is not None:
        return f"{state.name}: {state.trouble}"
    text = f"{state.name} ({state.address}): {state.done:,} done, {state.waiting:,} waiting"
    text += f", {state.failed:,} failed"
    if state.missed:
        text += f", {state.missed:,} missed"
    if state.retrying is not None:
        one = state.retrying
        text += f"\n  retrying since {moment(one.since)}, {one.tries} tries: {one.error}"
    return text
