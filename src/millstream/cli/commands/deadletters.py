"""`millstream deadletters`: shows events that could not be processed, and retries them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from millstream.cli.commands.actions import known_action, opened_actions, put_back_letters
from millstream.cli.commands.slates import as_json
from millstream.cli.progress import moment
from millstream.cli.store import mirrored, named_store, store_options
from millstream.cli.which_server import asks_server, open_client, url_instead_options
from millstream.counted_nouns import counted, verb
from millstream.errors import CommandError
from millstream.letters.letter_row import LetterRow
from millstream.letters.retry_log import RETRIED, clear_letters, given_again
from millstream.letters.selection import KINDS
from millstream.nearest import nearest

if TYPE_CHECKING:
    from millstream.log.stream_logs import StreamLogs

OWN_KINDS = ("deadletters", "late", "dropped")
"""The kinds that have a log of their own, which nothing else is in."""


def _moment(ctx: click.Context, param: click.Parameter, given: str | None) -> int | None:
    """Parses a time into microseconds; without a zone it is UTC."""
    if given is None:
        return None
    try:
        at = datetime.fromisoformat(given)
    except ValueError:
        raise CommandError(
            f"{param.opts[0]} must be a time such as 2026-01-05T09:00:00Z; got {given!r}"
        ) from None
    at = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    return round(at.timestamp() * 1e6)


VALUE_WIDTH = 200
"""The most characters of a value that the readable list shows."""


@click.group(invoke_without_command=True)
@click.pass_context
@store_options
@click.option("--function", metavar="NAME", help="Only those of this map or update.")
@click.option(
    "--limit",
    type=click.IntRange(1),
    default=50,
    show_default=True,
    help="Print at most this many.",
)
@click.option("--json", "as_lines", is_flag=True, help="One complete JSON object a line.")
@click.option("--left", is_flag=True, help="Only those that were not retried.")
@click.option("--action", metavar="NAME", help="Those of this action instead: what it gave up.")
def deadletters(
    ctx: click.Context,
    store: str | None,
    app: str | None,
    function: str | None,
    limit: int,
    as_lines: bool,
    left: bool,
    action: str | None,
) -> None:
    """Show the events that failed: the error, the user's line, the key and the value.

    Nothing of a failed event reached a slate or a stream. Once the cause is fixed, `millstream
    deadletters retry` passes them to their functions again; they stay in this list, with a mark.

    \b
    Examples:
        millstream deadletters
        millstream deadletters --function count --json | jq .error
        millstream deadletters retry --function count --error KeyError
        millstream deadletters --action notify
    """
    from millstream.actions.overview import action_states

    if ctx.invoked_subcommand is not None:
        return
    failed: set[str] = set()
    with opened_actions(store, app, logs=["deadletters", RETRIED]) as chosen:
        if action is not None:
            _list_given_up(known_action(chosen, action), action, limit, as_lines, left)
            return
        wanted = (row for row in _rows(chosen) if not (left and row.get("given_again")))
        rows = _chosen(wanted, function, failed)
        shown = 0
        for row in islice(rows, limit):
            click.echo(as_json(row) if as_lines else readable(row))
            shown += 1
        if not shown:
            owner = f" of {function!r}{_hint(function, failed)}" if function else ""
            click.echo(f"no dead letters{owner}{' that were not retried' * left}", err=True)
        elif next(rows, None) is not None:
            click.echo(f"... and more: raise --limit above {limit}", err=True)
        for state in action_states(chosen):
            if state.failed:
                events = counted(state.failed, "event")
                advice = f"see them with millstream deadletters --action {state.name}"
                click.echo(f"action {state.name!r} gave up {events}; {advice}", err=True)


@deadletters.command()
@store_options
@url_instead_options
@click.option(
    "--kind",
    type=click.Choice(KINDS),
    default="deadletters",
    show_default=True,
    help="What to retry; for diverted events name the --function that diverted them.",
)
@click.option("--function", metavar="NAME", help="Only those of this map or update.")
@click.option("--stream", metavar="NAME", help="Only those of this stream.")
@click.option("--error", metavar="TEXT", help="Only those whose error contains this text.")
@click.option("--key", metavar="KEY", help="Only those of this key.")
@click.option("--since", metavar="TIME", callback=_moment, help="Only those set aside since then.")
@click.option("--until", metavar="TIME", callback=_moment, help="Only those set aside before then.")
@click.option(
    "--limit", type=click.IntRange(1), help="At most this many, the oldest.  [default: all]"
)
@click.option("--dry-run", is_flag=True, help="Only say how many there are.")
@click.option(
    "--action", metavar="NAME", help="All events that this action gave up, without other filters."
)
def retry(
    store: str | None,
    app: str | None,
    url: str | None,
    token_file: Path | None,
    action: str | None,
    **wanted: Any,
) -> None:
    """Pass letters to their functions again: each only once, however often this is called.

    Dead letters, and dropped and diverted events, go only to the function that failed or rejected
    them. Late events, and records that never became events, go to all readers of their stream;
    records are parsed as their source is defined now. The application processes them in its next
    batch, or after its next start; it may run meanwhile. Those that fail again become new letters.

    TIME is ISO 8601, as in 2026-01-05T09:00:00Z.

    \b
    Examples:
        millstream deadletters retry --function score --error "KeyError: 'country'"
        millstream deadletters retry --since 2026-01-05T09:00:00Z --dry-run
        millstream deadletters retry --kind late
        millstream deadletters retry --url https://app.example.com
        millstream deadletters retry --action notify
    """
    from millstream.letters.selection import LetterFilter

    chosen = LetterFilter(**wanted)
    if action is not None:
        if chosen != LetterFilter(dry_run=chosen.dry_run):
            raise CommandError(
                "--action puts back all events that the action gave up; it must have no other "
                "filter: leave them out"
            )
        _put_back(store, app, url, token_file, action, chosen.dry_run)
        return
    if asks_server(url, store, app, token_file):
        with open_client(url, token_file) as client:
            outcome: Any = client.retry(**wanted)
    else:
        outcome = _retried(named_store(store, app), chosen)
    noun = _noun(chosen.kind)
    given, before = outcome.given, outcome.before
    would = "would be" if chosen.dry_run else verb(given, "is", "are")
    click.echo(f"{counted(given, noun)} {would} retried")
    if before:
        were = verb(before, "was", "were")
        click.echo(f"{before:,} {were} retried before, and {were} skipped", err=True)
    for reason, number in outcome.impossible.items():
        is_ = verb(number, "it is", "each is")
        click.echo(f"{number:,} cannot be retried: {is_} {reason}", err=True)


@deadletters.command()
@store_options
@click.option(
    "--kind",
    type=click.Choice(OWN_KINDS),
    default="deadletters",
    show_default=True,
    help="What to remove.",
)
@click.option("--dry-run", is_flag=True, help="Only say how many there are.")
def clear(store: str | None, app: str | None, kind: str, dry_run: bool) -> None:
    """Remove all dead letters, or late or dropped events, from a store for good.

    The counts of the store stay, and so do the numbers: later letters can be retried as usual.
    Letters that were retried, and that the application has yet to process, are not lost. Letters
    that another application reads are kept until it has read them.

    The application must be stopped, unless the store is a shared one; its server may run.

    \b
    Examples:
        millstream deadletters clear
        millstream deadletters clear --kind late --dry-run
    """
    with _logs_of(named_store(store, app)) as logs:
        removed, kept = clear_letters(logs, kind, dry_run=dry_run)
    would = "would be" if dry_run else verb(removed, "is", "are")
    click.echo(f"{counted(removed, _noun(kind))} {would} removed")
    if kept:
        has = verb(kept, "is", "are")
        click.echo(f"{kept:,} {has} kept: another application has yet to read them", err=True)


def _noun(kind: str) -> str:
    return "dead letter" if kind == "deadletters" else f"{kind} event"


def _put_back(
    store: str | None,
    app: str | None,
    url: str | None,
    token_file: Path | None,
    action: str,
    dry_run: bool,
) -> None:
    """Puts back the events that an action gave up."""
    if asks_server(url, store, app, token_file):
        with open_client(url, token_file) as client:
            given = client.retry_action(action, dry_run=dry_run)
    else:
        given = put_back_letters(store, app, action, dry_run=dry_run)
    would = "would be" if dry_run else verb(given, "is", "are")
    click.echo(f"{counted(given, 'dead letter')} of action {action!r} {would} put back")


def _list_given_up(store: Path, action: str, limit: int, as_lines: bool, left: bool) -> None:
    """Prints the events that an action gave up; `left`: without those that were put back."""
    from millstream.actions.letters import letters
    from millstream.actions.record import retry_until

    put_back = retry_until(store, action)
    rows = letters(store, action, put_back if left else 0)
    shown = 0
    for number, letter in islice(rows, limit):
        row = msgspec.json.decode(msgspec.json.encode(letter))
        if number < put_back:
            row["given_again"] = True
        click.echo(as_json(row) if as_lines else _readable_given_up(row))
        shown += 1
    if not shown:
        click.echo(f"no dead letters of action {action!r}", err=True)
    elif next(rows, None) is not None:
        click.echo(f"... and more: raise --limit above {limit}", err=True)


def _retried(store: Path | str, wanted: Any) -> Any:
    """Retries letters of a store; the application may run meanwhile."""
    from millstream.description import read_description
    from millstream.letters.retry_log import retry_letters

    if isinstance(store, Path):
        description = read_description(store)
    else:
        with mirrored(store) as mirror:
            description = read_description(mirror)
    overflows = {} if description is None else description.overflows
    functions = [] if description is None else description.function_names
    with _logs_of(store) as logs:
        return retry_letters(logs, wanted, overflows, functions)


@contextmanager
def _logs_of(store: Path | str) -> Iterator[StreamLogs]:
    """Opens the logs of a store in a folder, or in a place."""
    from millstream.log.stream_logs import FolderLogs, PlaceLogs

    if isinstance(store, Path):
        yield FolderLogs(store / "logs")
        return
    from tempfile import TemporaryDirectory

    from millstream.places.place_address import place_at

    with (
        TemporaryDirectory(prefix="millstream-") as folder,
        closing(PlaceLogs(place_at(store), Path(folder))) as logs,
    ):
        yield logs


def _rows(store: Path) -> Iterator[Mapping[str, Any]]:
    """Yields all dead letters; those that were retried are marked."""
    from millstream.log.stream_logs import FolderLogs
    from millstream.sinks.row_files import decode_row

    logs = FolderLogs(store / "logs")
    again = given_again(logs)
    with closing(logs.reader("deadletters")) as reader:
        for block in reader.blocks(reader.start[0], reader.end[0]):
            for number, line in enumerate(block.lines, block.first):
                row = decode_row(line)
                yield {**row, "given_again": True} if number in again else row


def _chosen(
    rows: Iterable[Mapping[str, Any]], function: str | None, failed: set[str]
) -> Iterator[Mapping[str, Any]]:
    """Yields the rows of a function, and adds the functions of all rows to `failed`."""
    for row in rows:
        if row.get("function"):
            failed.add(row["function"])
        if function is None or row.get("function") == function:
            yield row


def _hint(function: str, failed: set[str]) -> str:
    near = nearest(function, sorted(failed))
    if near is not None:
        return f"; did you mean {near!r}?"
    return f"; there are some of: {', '.join(sorted(failed))}" if failed else ""


def readable(row: Mapping[str, Any]) -> str:
    """Describes a dead letter in a few lines."""
    letter = msgspec.convert(row, LetterRow)
    owner = letter.function or "(no function: the record is not an event)"
    if letter.timer is not None:
        owner += f", timer {letter.timer!r}"
    head = [f"batch {letter.batch}: {owner}"]
    if letter.stream:
        head.append(f"stream {letter.stream}")
    head.append(f"key {letter.key!r}")
    if letter.ts is not None:
        head.append(moment(letter.ts))
    if row.get("given_again"):
        head.append("retried")
    file, line = letter.file, letter.line
    place = f" ({file}:{line})" if file and line else f" ({file})" if file else ""
    value = letter.value
    if isinstance(value, bytes) and letter.form in ("json", "line", "row"):
        value = value.decode(errors="replace")  # text that is not UTF-8: easier to read than base64
    return f"{', '.join(head)}\n  {letter.error}{place}\n  value {_short(value)}"


def _readable_given_up(row: Mapping[str, Any]) -> str:
    """Describes an event that an action gave up in a few lines."""
    head = f"action {row['action']}, key {row['key']!r}, {moment(row['ts'])}"
    again = ", retried" * bool(row.get("given_again"))
    tries = f"{counted(row['tries'], 'try', 'tries')}, the last at {moment(row['last'])}"
    content = "bytes" if "bytes" in row else "value"
    return f"{head}{again}\n  {row['error']} ({tries})\n  {content} {_short(row.get(content))}"


def _short(value: Any) -> str:
    text = as_json(value)
    return text if len(text) <= VALUE_WIDTH else text[: VALUE_WIDTH - 3] + "..."
