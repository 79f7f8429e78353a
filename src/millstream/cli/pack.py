"""`millstream pack`: the code of an application's jobs as a signed package for its agents."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import click

from millstream import __version__
from millstream.cli.progress import say
from millstream.errors import CommandError, DefinitionError
from millstream.model.place import shown_path


@click.command()
@click.argument("app", required=False)
@click.option(
    "--sign",
    "key_file",
    type=click.Path(path_type=Path),
    metavar="KEYFILE",
    help="The private key to sign it with.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Where to write it.  [default: APP'S-NAME.package.zip]",
)
@click.option(
    "--include",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="A file or folder beside the application that it needs and does not import. Repeatable.",
)
@click.option(
    "--new-key",
    "key",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Make a key: the private one in FILE, the public one in FILE.pub.",
)
def pack(
    app: str | None,
    key_file: Path | None,
    output: Path | None,
    include: tuple[Path, ...],
    key: Path | None,
) -> None:
    """Pack the code of an application's Python jobs, for agents on nodes that have none of it.

    The package holds the application's file and the modules beside it that it imports. A node runs
    it only if its operator has allowed the key that signed it, or its hash. Jobs that are data need
    no package. The same content gives the same bytes.

    \b
    Examples:
        millstream pack --new-key release.key
        millstream pack app.py --sign release.key
        millstream run app.py --package logs.package.zip
    """
    if key is not None:
        if app is not None or key_file or output or include:
            raise CommandError("--new-key must stand alone: make the key, then pack with --sign")
        _new_key(key)
    elif app is None:
        raise CommandError("millstream pack needs APP, as in app.py, or --new-key FILE")
    else:
        _pack(app, key_file, output, include)


def _new_key(path: Path) -> None:
    from millstream.packages.keys import new_key

    public = new_key(path)
    say(f"private key {shown_path(path)}: keep it; whoever has it decides what your nodes run")
    say(f"public key {shown_path(public)}: copy it to the nodes, for their --allow")


def _pack(app: str, key_file: Path | None, output: Path | None, include: tuple[Path, ...]) -> None:
    from millstream.durable import write_whole
    from millstream.modules import forget_user_modules, off_path
    from millstream.packages.collecting import collect
    from millstream.packages.keys import sign
    from millstream.packages.loading import load_package
    from millstream.packages.manifest import encoded
    from millstream.packages.package import read_package, write_package

    collected = collect(app, __version__, include)
    signature = None if key_file is None else sign(encoded(collected.manifest), key_file)
    data = write_package(collected.manifest, collected.files, signature)
    package = read_package(data)
    # As an agent will: from the package alone, without the files that it was made of.
    forget_user_modules()
    off_path(collected.root)
    with TemporaryDirectory() as folder:
        try:
            load_package(package, Path(folder))
        except DefinitionError as error:
            told = str(error).replace(f"{Path(folder).resolve() / package.sha256}/", "")
            raise DefinitionError(
                f"{app}: must load from its package alone, as on a node; {told}; write it as an "
                "import statement, or name the file with --include"
            ) from error
    path = output or Path(f"{collected.manifest.app}.package.zip")
    write_whole(path, data)
    say(
        f"{shown_path(path)}: app {package.manifest.app}, jobs {', '.join(package.manifest.jobs)}, "
        f"{', '.join(collected.files)}"
    )
    say(f"sha256:{package.sha256}")
    if signature is None:
        say("not signed: a node must allow its hash, or pack it with --sign KEYFILE")
    else:
        say(f"signed by the key {signature.key}")
