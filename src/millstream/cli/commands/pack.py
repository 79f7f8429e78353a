"""`millstream pack`: packs the code of an application's jobs, signed, for its agents."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import click

from millstream.errors import CommandError, DefinitionError
from millstream.model.place import shown_path
from millstream.notices import say
from millstream.version import VERSION


@click.command()
@click.argument("app", required=False)
@click.option(
    "--sign",
    "key_file",
    type=click.Path(path_type=Path),
    metavar="KEYFILE",
    help="Sign the package with this private key.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The file to write.  [default: APP'S-NAME.package.zip]",
)
@click.option(
    "--include",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="A file or folder beside the application that it needs but does not import. Repeatable.",
)
@click.option(
    "--runtime",
    is_flag=True,
    help="Pack everything that executors of a cluster need, instead of a package for agents.",
)
@click.option(
    "--new-key",
    "key",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Make a key pair: the private key in FILE, the public key in FILE.pub.",
)
def pack(
    app: str | None,
    key_file: Path | None,
    output: Path | None,
    include: tuple[Path, ...],
    runtime: bool,
    key: Path | None,
) -> None:
    """Pack the code of an application's Python jobs, for agents on nodes without that code.

    The package holds the application's file and the modules beside it that it imports. A node runs
    it only if its operator has allowed the key that signed it, or its hash. Jobs that are data need
    no package. The same content gives the same bytes.

    With --runtime it is an archive for the executors of a Spark cluster instead, with Millstream
    and the libraries that it needs. `millstream run --listen` makes one by itself.

    \b
    Examples:
        millstream pack --new-key release.key
        millstream pack app.py --sign release.key
        millstream run app.py --package logs.package.zip
        millstream pack app.py --runtime -o app.runtime.zip
    """
    if key is not None:
        if app is not None or key_file or output or include or runtime:
            raise CommandError("--new-key must stand alone: make the key, then pack with --sign")
        _new_key(key)
    elif app is None:
        raise CommandError("millstream pack needs APP, as in app.py, or --new-key FILE")
    elif runtime:
        if key_file is not None:
            raise CommandError(
                "--runtime: an archive for executors is not signed; leave out --sign"
            )
        from millstream.cli.runtime import pack_runtime

        pack_runtime(app, output, include)
    else:
        _pack(app, key_file, output, include)


def _new_key(path: Path) -> None:
    from millstream.packages.keys import new_key

    public = new_key(path)
    say(f"private key {shown_path(path)}: keep it; anyone who has it decides what your nodes run")
    say(f"public key {shown_path(public)}: copy it to the nodes, for their --allow")


def _pack(app: str, key_file: Path | None, output: Path | None, include: tuple[Path, ...]) -> None:
    from millstream.durable import write_whole
    from millstream.modules import forget_user_modules, off_path
    from millstream.packages.app_files import collect
    from millstream.packages.keys import sign
    from millstream.packages.manifest import encoded
    from millstream.packages.package import read_package, write_package
    from millstream.packages.package_loader import load_package

    collected = collect(app, VERSION, include)
    signature = None if key_file is None else sign(encoded(collected.manifest), key_file)
    data = write_package(collected.manifest, collected.files, signature)
    package = read_package(data)
    # Load it as an agent will: from the package alone, without its original files.
    forget_user_modules()
    off_path(collected.root)
    with TemporaryDirectory() as folder:
        try:
            load_package(package, Path(folder))
        except DefinitionError as error:
            reason = str(error).replace(f"{Path(folder).resolve() / package.sha256}/", "")
            raise DefinitionError(
                f"{app}: must load from its package alone, as on a node; {reason}; write it as an "
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
        say("not signed: nodes must allow its hash; to sign it, pack it with --sign KEYFILE")
    else:
        say(f"signed by the key {signature.key}")
