"""Millstream: map and update functions over fast data, with durable, readable slates.

Each name is imported on first use. A process that needs little of Millstream (an agent, the check
of a store at each start) starts 60 ms sooner, and writing an application needs neither HTTP nor
Spark.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from millstream.version import VERSION

if TYPE_CHECKING:
    from millstream import algebra, elements, feeds, testing, windows
    from millstream import spark as spark
    from millstream.application import App, RunningApp
    from millstream.client import AsyncClient, Client
    from millstream.elements.element import Configured, Element
    from millstream.errors import (
        ClientError,
        CodecError,
        DefinitionError,
        FunctionError,
        InputError,
        MillstreamError,
        RunError,
        SlateError,
        StoreError,
    )
    from millstream.lookups.lookup import lookup
    from millstream.model.event import Effect, Event, Timer, emit, forget, timer
    from millstream.model.migration import field
    from millstream.model.slate import Table
    from millstream.stores.reader import SlateReader

__version__ = VERSION

__all__ = [
    "App",
    "AsyncClient",
    "Client",
    "ClientError",
    "CodecError",
    "Configured",
    "DefinitionError",
    "Effect",
    "Element",
    "Event",
    "FunctionError",
    "InputError",
    "MillstreamError",
    "RunError",
    "RunningApp",
    "SlateError",
    "SlateReader",
    "StoreError",
    "Table",
    "Timer",
    "algebra",
    "elements",
    "emit",
    "feeds",
    "field",
    "forget",
    "lookup",
    "testing",
    "timer",
    "windows",
]

_PACKAGES = ("algebra", "elements", "feeds", "spark", "testing", "windows")
"""Packages imported on first use. `spark` is not in `__all__`: `import *` would load it."""
_MODULES = {
    "millstream.client": ("AsyncClient", "Client"),
    "millstream.elements.element": ("Configured", "Element"),
    "millstream.errors": tuple(name for name in __all__ if name.endswith("Error")),
    "millstream.application": ("App", "RunningApp"),
    "millstream.model.event": ("Effect", "Event", "Timer", "emit", "forget", "timer"),
    "millstream.lookups.lookup": ("lookup",),
    "millstream.model.migration": ("field",),
    "millstream.model.slate": ("Table",),
    "millstream.stores.reader": ("SlateReader",),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


if not TYPE_CHECKING:  # a type checker would believe that every name exists

    def __getattr__(name: str) -> Any:
        if name in _PACKAGES:
            return import_module(f"{__name__}.{name}")
        if name in _MODULE_OF:
            value = globals()[name] = getattr(import_module(_MODULE_OF[name]), name)
            return value
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
