"""Millstream: map and update functions over fast data, with durable, readable slates."""

from millstream import testing
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
    "CodecError",
    "DefinitionError",
    "Event",
    "FunctionError",
    "InputError",
    "MillstreamError",
    "RunError",
    "StoreError",
    "Table",
    "Timer",
    "emit",
    "forget",
    "testing",
    "timer",
]
