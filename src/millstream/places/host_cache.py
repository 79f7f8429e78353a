"""A host's folders for data that it can fetch again: copies, mirrors, working folders."""

from __future__ import annotations

import getpass
import os
import tempfile
from hashlib import sha256
from pathlib import Path

CACHE = "MILLSTREAM_CACHE"
"""The variable that names the folder on a host."""


def cache_folder(given: str = "") -> Path:
    """This host's cache folder: `given`, or `MILLSTREAM_CACHE`, or a folder of this user in the
    directory of temporary files."""
    named = given or os.environ.get(CACHE)
    return Path(named or Path(tempfile.gettempdir()) / f"millstream-{getpass.getuser()}")


def working_folder(address: str, use: str, given: str = "") -> Path:
    """The folder of this host for one use of a place, such as `driver`."""
    return cache_folder(given) / sha256(address.encode()).hexdigest()[:16] / use
