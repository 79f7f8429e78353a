"""The archive that brings the code to the executors of a cluster: packed, or made for a run."""

from __future__ import annotations

from pathlib import Path

from millstream.config import load
from millstream.model.place import shown_path
from millstream.model.size import MIB
from millstream.notices import say
from millstream.settings.cluster_options import INSTALLED
from millstream.settings.settings import Settings
from millstream.version import VERSION


def pack_runtime(app: str, output: Path | None, include: tuple[Path, ...]) -> None:
    """Writes the archive of an application."""
    from millstream.packages.runtime_archive import runtime_files, write_runtime

    path = output or Path(f"{load(app).app.name}.runtime.zip")
    files = runtime_files(app, VERSION, include)
    write_runtime(path, files)
    runtime = files.runtime
    say(
        f"{shown_path(path)}: {path.stat().st_size / MIB:.0f} MiB, for Python {runtime.python} on "
        f"{runtime.platform}: millstream {runtime.millstream}, "
        + ", ".join(f"{name} {version}" for name, version in runtime.libraries.items())
    )


def with_runtime(target: str | None, settings: Settings) -> Settings:
    """Returns the settings with the archive for executors on other machines, if there are any."""
    given, listen = settings.cluster.runtime, settings.cluster.listen
    if given == INSTALLED or not (listen or given):
        return settings
    from millstream.packages.runtime_archive import check_runtime, kept_runtime, runtime_files

    if given:
        check_runtime(Path(given), VERSION)
        return settings
    folder = settings.storage.store.parent / "runtime"
    path = kept_runtime(folder, runtime_files(target, VERSION))
    return settings.changed(runtime=str(path))
