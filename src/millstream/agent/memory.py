"""How much memory the process has, and giving back what it does not use."""

from __future__ import annotations

import ctypes
import gc
import os

_PAGE = os.sysconf("SC_PAGE_SIZE")


def resident() -> int:
    """Bytes that are resident; 0 where the system does not say."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * _PAGE
    except (OSError, IndexError, ValueError):
        return 0


def give_back() -> None:
    """Give memory that is free back to the system, which Python alone would keep."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
