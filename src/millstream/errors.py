"""Every error that Millstream raises on purpose, in one tree.

    MillstreamError
    ├── DefinitionError      the application is wrong: names, graph, arguments, TOML
    ├── FunctionError        a map, update or timer function broke a rule
    ├── InputError           a record, a file or an address cannot be read
    ├── CodecError           a value or slate that JSON cannot carry
    ├── StoreError           the store is missing, locked, damaged or of another application
    │   ├── StaleCommit      a commit came from an older driver, batch or attempt
    │   ├── StaleRead        a reader named a batch that the shard no longer remembers
    │   ├── StoreLocked      another driver holds the store
    │   └── LogError         an event log is damaged, full or not what it was
    │       └── LogLocked    another process writes to the log
    ├── PackageError         a package of code is damaged, or nobody allowed it here
    ├── ClientError          a server refused, or did not answer
    ├── CommandError         a word of the command line is wrong
    └── RunError             the application stopped while running: on_error="fail", a sink, Spark
        └── SinkError        a sink cannot be written for now: it may be tried again

A message says where, what must be, what came, and what to do.
"""


class MillstreamError(Exception):
    """The root: catch this to catch every error that Millstream raises on purpose."""


class DefinitionError(MillstreamError):
    """The application as written cannot run; raised while it is built, never inside a worker."""


class FunctionError(MillstreamError):
    """A user's function emitted something that the model forbids."""


class InputError(MillstreamError):
    """A record, a file or an address cannot be read."""


class CodecError(MillstreamError):
    """A value or a slate that JSON cannot carry."""


class StoreError(MillstreamError):
    """The store is missing, damaged, full or belongs to another application."""


class StaleCommit(StoreError):
    """A commit from an older driver, batch or attempt: refused, nothing changed."""


class StaleRead(StoreError):
    """A reader named a committed batch that the shard has left behind: name a newer one."""


class StoreLocked(StoreError):
    """Another driver holds this store."""


class LogError(StoreError):
    """An event log cannot be read or written; what it has acknowledged is not touched."""


class LogLocked(LogError):
    """Another process writes to this log."""


class PackageError(MillstreamError):
    """A package of code is damaged, too large, or not allowed on this node; nothing of it ran."""


class ClientError(MillstreamError):
    """A server refused what a client asked, or did not answer. It has what the server said."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        """The HTTP status; None if there was no answer."""


class CommandError(MillstreamError):
    """A word of the command line is wrong; nothing was done."""


class RunError(MillstreamError):
    """The application stopped while it was running."""


class SinkError(RunError):
    """A sink cannot be written for now; the same batch may be given to it again."""
