"""Millstream: map and update functions over fast data, with durable, readable slates."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from millstream import algebra, elements, feeds, testing, windows
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

if TYPE_CHECKING:
    from millstream import spark as spark
    from millstream.client import Client

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


def __getattr__(name: str) -> Any:
    """What is loaded when it is asked for: who writes an application needs neither HTTP nor Spark.

    `spark` is no name of `__all__`, since `from millstream import *` would load it.
    """
    if name == "Client":
        from millstream.client import Client

        return Client
    if name == "spark":
        return import_module("millstream.spark")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
