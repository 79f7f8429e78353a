"""Every error that Millstream raises on purpose, in one tree.

    MillstreamError
    ├── DefinitionError      the application is wrong: names, graph, arguments, TOML
    ├── FunctionError        a map, update or timer function broke a rule
    │   ├── LookupRefused    a lookup could not be read, and its event is a dead letter
    │   └── LookupFailed     a lookup could not be read, and its task fails
    ├── InputError           a record, a file or an address cannot be read
    │   ├── CursorUnknown    a cursor of a feed that is not from an answer
    │   └── CursorConflict   a cursor of a feed that does not fit the rest of the request
    ├── CodecError           a value or slate that JSON cannot carry
    ├── SlateError           a stored slate no longer fits the application
    ├── StoreError           the store is missing, locked, damaged or of another application
    │   ├── StaleCommit      a commit came from an older driver, batch or attempt
    │   ├── StaleRead        a reader named a batch that the shard no longer remembers
    │   ├── ShardElsewhere   a mirror of some shards was asked for another shard
    │   ├── StoreLocked      another driver holds the store
    │   ├── PlaceError       the place of a shared store does not answer, or refuses
    │   │   └── PlaceDamaged an object there does not fit its checksum
    │   └── LogError         an event log is damaged, full or was changed
    │       └── LogLocked    another process writes to the log
    ├── PackageError         a package of code is damaged, or not allowed on this node
    ├── ClientError          a server refused a request, or did not answer
    ├── MissingExtra         a library of an extra is not installed
    ├── CommandError         an argument on the command line is wrong
    └── RunError             the application stopped while running: on_error="fail", a sink, Spark
        └── SinkError        a sink cannot be written for now: it may be retried

A message says where, what must be, what came, and what to do.
"""


class MillstreamError(Exception):
    """The root: catch this to catch every error that Millstream raises on purpose."""


class DefinitionError(MillstreamError):
    """The application as written cannot run; raised while it is built, never inside a worker."""


class FunctionError(MillstreamError):
    """A user's function emitted something that the model forbids."""


class LookupRefused(FunctionError):
    """A lookup could not be read in time; the event becomes a dead letter."""


class LookupFailed(FunctionError):
    """A lookup could not be read in time; the task fails, and nothing of its batch takes effect."""


class InputError(MillstreamError):
    """A record, a file or an address cannot be read."""


class CursorUnknown(InputError):
    """Text that has the form of a cursor of a feed, but is not from an answer."""


class CursorConflict(InputError):
    """A cursor of a feed that does not fit the rest of the request."""


class MissingExtra(MillstreamError):
    """A library that only one part of Millstream needs is not installed."""


class CodecError(MillstreamError):
    """A value or a slate that JSON cannot carry."""


class SlateError(MillstreamError):
    """A stored slate no longer fits the application: the event that came is not to blame."""


class StoreError(MillstreamError):
    """The store is missing, damaged, full or belongs to another application."""


class StaleCommit(StoreError):
    """A commit from an older driver, batch or attempt: refused, nothing changed."""


class StaleRead(StoreError):
    """A reader named a committed batch that the shard no longer remembers: name a newer one."""


class ShardElsewhere(StoreError):
    """This mirror has only some shards of a store, and not the requested one."""


class StoreLocked(StoreError):
    """Another driver holds this store."""


class PlaceError(StoreError):
    """The place of a shared store failed; the request may or may not have taken effect."""


class PlaceDamaged(PlaceError):
    """An object does not match its checksum: a retry will not help."""


class LogError(StoreError):
    """An event log cannot be read or written; records that it has acknowledged are not changed."""


class LogLocked(LogError):
    """Another process writes to this log."""


class PackageError(MillstreamError):
    """A package of code is damaged, too large, or not allowed on this node; nothing of it ran."""


class ClientError(MillstreamError):
    """A server refused a client's request, or did not answer. The message quotes the server."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        """The HTTP status; None if there was no answer."""


class CommandError(MillstreamError):
    """An argument on the command line is wrong; nothing was done."""


class RunError(MillstreamError):
    """The application stopped while it was running."""


class SinkError(RunError):
    """A sink cannot be written at present; the same batch may be written again later."""
