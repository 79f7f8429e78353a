"""The command line: its commands, errors and exit codes.

Exit codes: 0 success, 1 the application or the run failed, 2 the command or the definition is
wrong. A user's mistake is shown as one line, `error: ...`, on stderr; `--debug` anywhere on the
command line shows where it was raised.
"""

from __future__ import annotations

import traceback
from typing import Any

import click

from millstream.cli.commands.actions import actions
from millstream.cli.commands.agent import agent
from millstream.cli.commands.agents import agents
from millstream.cli.commands.backup import backup, copy, restore
from millstream.cli.commands.check import check
from millstream.cli.commands.deadletters import deadletters
from millstream.cli.commands.dev import dev
from millstream.cli.commands.feeds import feeds
from millstream.cli.commands.graph import graph
from millstream.cli.commands.jobs import jobs
from millstream.cli.commands.migrate import migrate
from millstream.cli.commands.new import new
from millstream.cli.commands.pack import pack
from millstream.cli.commands.plan import plan
from millstream.cli.commands.reducers import reducers
from millstream.cli.commands.reshard import reshard
from millstream.cli.commands.run import run
from millstream.cli.commands.send import send
from millstream.cli.commands.serve import serve
from millstream.cli.commands.slates import slates
from millstream.cli.commands.tail import tail
from millstream.cli.commands.tokens import tokens
from millstream.cli.commands.vacuum import vacuum
from millstream.cli.commands.verify import verify
from millstream.cli.error_exit import FAILED, INTERRUPTED, exit_code, show
from millstream.durable import GIVE_READING
from millstream.errors import CommandError, MillstreamError
from millstream.extras import needed_by
from millstream.version import VERSION


class Commands(click.Group):
    """A group that accepts `--debug` anywhere and shows Millstream's errors."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        end = args.index("--") if "--" in args else len(args)
        ctx.meta["millstream.debug"] = "--debug" in args[:end]
        kept = [arg for arg in args[:end] if arg != "--debug"] + args[end:]
        return super().parse_args(ctx, kept)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)  # in the order of a first hour with Millstream

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with needed_by("this command"):
                return super().invoke(ctx)
        except MillstreamError as error:
            if ctx.meta["millstream.debug"]:
                click.echo("".join(traceback.format_exception(error)).rstrip(), err=True)
            show(error)
            ctx.exit(exit_code(error))
        except PermissionError as error:
            if ctx.meta["millstream.debug"] or error.filename is None:
                raise
            show(CommandError(f"{error.filename}: {error.strerror}; {GIVE_READING}"))
            ctx.exit(FAILED)
        except KeyboardInterrupt:  # before a command handles Ctrl-C, as while it loads an APP
            ctx.exit(INTERRUPTED)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, prog_name="millstream")
@click.option("--debug", is_flag=True, help="Show where an error was raised.")
def main(debug: bool) -> None:
    """Map and update functions over fast data, with slates you can read.

    \b
    The first five minutes:
        millstream new retail && cd retail
        millstream run app.py --source checkins=json:data/checkins --available-now
        millstream slates get count Walmart

    APP is app.py (or app.py:name), app.toml, or a module (or module:name).
    """


READING = (tail, slates, jobs, agents, feeds, deadletters, actions, check, graph)
for command in (
    new,
    dev,
    run,
    serve,
    tokens,
    send,
    pack,
    agent,
    reducers,
    *READING,
    plan,
    migrate,
    backup,
    restore,
    copy,
    verify,
    vacuum,
    reshard,
):
    main.add_command(command)


if __name__ == "__main__":
    main()
