"""Refuses files that are one JSON array: an agent reads a JSON value from each line.

Each of its lines would be a dead letter, and its windows would have no record.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from millstream.agent.log.log_file_list import Listing
from millstream.agent.log.log_files import LONGEST
from millstream.errors import CommandError
from millstream.model.line_records import is_array
from millstream.windows.logs import Logs


def check_lines(
    logs: Logs | None, path: Path, read: Callable[[int], bytes], *, growing: bool
) -> None:
    """Raise CommandError if the logs are JSON, and the file at `path` is one array. `read` returns
    its next bytes, from its start on. `growing`: more may be written to it."""
    if logs is None or logs.format != "json" or not is_array(read, LONGEST, growing=growing):
        return
    raise CommandError(
        f"{path} must have a JSON value in each line; it is one array: write each element in its "
        "own line, as `jq -c '.[]'` does, or let the application read it, with a source of json:DIR"
    )


def check_files(logs: Sequence[Logs | None], patterns: Sequence[str], *, growing: bool) -> None:
    """Raise CommandError if a file that the patterns name is one array, and one of the logs is
    JSON. Files that cannot be read are left out, since an agent waits for them."""
    for path in Listing(patterns).found().values():
        for form in logs:
            try:
                with path.open("rb") as file:
                    check_lines(form, path, file.read, growing=growing)
            except OSError:
                continue
