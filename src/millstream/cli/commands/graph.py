"""`millstream graph`: draws the workflow."""

from __future__ import annotations

from pathlib import Path

import click

from millstream import graph as drawing
from millstream.cli.commands.check import checked
from millstream.config import load
from millstream.errors import CommandError

DRAWINGS = {"text": drawing.text, "mermaid": drawing.mermaid, "svg": drawing.svg}
SUFFIXES = {".svg": "svg", ".mmd": "mermaid", ".mermaid": "mermaid"}


@click.command()
@click.argument("app")
@click.option(
    "--format", "form", type=click.Choice(list(DRAWINGS)), help="[default: by FILE's name, or text]"
)
@click.option(
    "--to",
    "file",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write to a file instead of stdout.",
)
def graph(app: str, form: str | None, file: Path | None) -> None:
    """Draw an application's workflow: sources, functions, streams, outputs.

    \b
    Examples:
        millstream graph app.py                    a tree, here
        millstream graph app.py --to retail.svg    an image
        millstream graph app.py --format mermaid   for a README
    """
    if form is None:
        form = SUFFIXES.get(file.suffix, "text") if file else "text"
    drawn = DRAWINGS[form](checked(load(app).app))
    if file is None:
        click.echo(drawn, nl=False)
        return
    try:
        file.write_text(drawn, encoding="utf-8")
    except OSError as error:
        raise CommandError(f"cannot write {file}: {error.strerror}") from None
    click.echo(f"wrote {file}", err=True)
