"""The handles that an application's decorators return; they can be called like the function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, ParamSpec, Protocol, TypeVar

from millstream.model.migration import Migration

UserFunction = Callable[..., Any]
P = ParamSpec("P")
R = TypeVar("R")
TimerFunction = TypeVar("TimerFunction", bound=UserFunction)


class Definition(Protocol):
    """The application that a handle belongs to."""

    def set_timer_function(self, name: str, function: UserFunction) -> None: ...

    def add_migration(self, name: str, migration: Migration) -> None: ...


class FunctionHandle(Generic[P, R]):
    """The handle of a map or update: callable, with the signature of the function."""

    def __init__(self, app: Definition, name: str, function: Callable[P, R]) -> None:
        self._app = app
        self.name = name
        self.function = function
        self.__name__ = getattr(function, "__name__", name)
        self.__doc__ = function.__doc__
        self.__wrapped__ = function

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)


class UpdateHandle(FunctionHandle[P, R]):
    """The handle of an update: it also registers a timer function and migrations."""

    def on_timer(self, function: TimerFunction) -> TimerFunction:
        """Register the function `(timer, slate)` that handles this update's timers."""
        self._app.set_timer_function(self.name, function)
        return function

    def migrate(self, before: int, after: int) -> Callable[[UserFunction], UserFunction]:
        """Register the function `(slate)` that turns slates of version `before` into `after`.

        It gets the stored slate as a dict, and changes it or returns another.
        """

        def decorate(function: UserFunction) -> UserFunction:
            self._app.add_migration(self.name, Migration(before, after, unwrapped(function)))
            return function

        return decorate


def unwrapped(function: Callable[P, R]) -> Callable[P, R]:
    return function.function if isinstance(function, FunctionHandle) else function
