"""Millstream: map and update functions over fast data, with durable, readable slates.

Each name is loaded when it is first asked for: a process that needs little of Millstream (an agent,
the check of a store at each start) is there 60 ms sooner, and who writes an application needs
neither HTTP nor Spark.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from millstream import algebra, elements, feeds, testing, windows
    from millstream import spark as spark
    from millstream.client import Client
    from millstream.elements.element import Configured, Element
    from millstream.errors import (
        CodecError,
        DefinitionError,
        FunctionError,
        InputError,
        MillstreamError,
        RunError,
        StoreError,
    )
    from millstream.model.app import App
    from millstream.model.event import Event, Timer, emit, forget, timer
    from millstream.model.slate import Table

__version__ = "0.1.0"

__all__ = [
    "App",
    "Client",
    "CodecError",
    "Configured",
    "DefinitionError",
    "Element",
    "Event",
    "FunctionError",
    "InputError",
    "MillstreamError",
    "RunError",
    "StoreError",
    "Table",
    "Timer",
    "algebra",
    "elements",
    "emit",
    "feeds",
    "forget",
    "testing",
    "timer",
    "windows",
]

_PACKAGES = ("algebra", "elements", "feeds", "spark", "testing", "windows")
"""`spark` is no name of `__all__`, since `from millstream import *` would load it."""
_MODULES = {
    "millstream.client": ("Client",),
    "millstream.elements.element": ("Configured", "Element"),
    "millstream.errors": tuple(name for name in __all__ if name.endswith("Error")),
    "millstream.model.app": ("App",),
    "millstream.model.event": ("Event", "Timer", "emit", "forget", "timer"),
    "millstream.model.slate": ("Table",),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return import_module(f"{__name__}.{name}")
    if name in _MODULE_OF:
        found = globals()[name] = getattr(import_module(_MODULE_OF[name]), name)
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
