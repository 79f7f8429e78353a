"""Measures the memory of the process, and gives back free memory to the system."""

from __future__ import annotations

import ctypes
import gc
import os

_PAGE = os.sysconf("SC_PAGE_SIZE")


def resident() -> int:
    """Returns the resident bytes; 0 where the system does not say."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * _PAGE
    except (OSError, IndexError, ValueError):
        return 0


def give_back() -> None:
    """Give free memory back to the system; Python alone would keep it."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
