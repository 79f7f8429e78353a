"""A place in object storage: S3 and compatible services, Google Cloud Storage, Azure.

One library, obstore, speaks to all of them; it is the extra `s3`. Credentials, region and endpoint
come from the same settings that each service's own tools use: `AWS_ACCESS_KEY_ID`,
`AWS_ENDPOINT_URL`, `GOOGLE_SERVICE_ACCOUNT`, `AZURE_STORAGE_ACCOUNT_NAME` and so on, or the
machine's role.

obstore runs threads of its own, which do not survive a fork: open a place in the process that uses
it. It is opened at its first use; an unpickled place opens again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from functools import cached_property
from typing import Any, TypeVar

from millstream.errors import PlaceError
from millstream.extras import needed_by
from millstream.places.place import Listed
from millstream.places.storage_failure import RANGE, code_in, failure, is_missing_key

T = TypeVar("T")
TRIES = 5
TRY_SECONDS = 10.0
"""Seconds for which a request is retried: after that the caller decides."""
STALLED_SECONDS = 10.0
"""A request without any answer for this long has failed; an upload must have ended by then."""
REQUEST_SECONDS = 120.0
"""Seconds that reading a whole answer may take."""
WHOLE_BYTES = 32 << 20
"""Objects up to this size are put with one request, larger ones in parts. A create is always one
request, since only a whole upload can be conditional."""
PART_BYTES = 16 << 20


class ObjectPlace:
    """Objects under a prefix of a bucket, named by an address such as `s3://bucket/prefix`."""

    def __init__(self, address: str) -> None:
        self.address = address.rstrip("/")

    def __reduce__(self) -> tuple[type[ObjectPlace], tuple[str]]:
        return ObjectPlace, (self.address,)

    @cached_property
    def _service(self) -> Any:
        store = _obstore().store
        options: dict[str, Any] = {
            "client_options": {
                "timeout": timedelta(seconds=REQUEST_SECONDS),
                "read_timeout": timedelta(seconds=STALLED_SECONDS),
                "connect_timeout": timedelta(seconds=STALLED_SECONDS / 2),
                "allow_http": True,
            },
            "retry_config": {
                "max_retries": TRIES,
                "retry_timeout": timedelta(seconds=TRY_SECONDS),
                "backoff": {
                    "base": 2,
                    "init_backoff": timedelta(milliseconds=50),
                    "max_backoff": timedelta(seconds=2),
                },
            },
        }
        try:
            return store.from_url(self.address, **options)
        except Exception as error:
            raise self._failed("", error) from None

    def put(self, name: str, data: bytes) -> None:
        parts = {"use_multipart": len(data) > WHOLE_BYTES, "chunk_size": PART_BYTES}
        self._asked(name, lambda: _obstore().put(self._service, name, data, **parts))

    def create(self, name: str, data: bytes) -> bool:
        options = {"mode": "create", "use_multipart": False}
        try:
            self._asked(name, lambda: _obstore().put(self._service, name, data, **options))
        except _NameTaken:
            return False
        return True

    def get(self, name: str, start: int = 0, end: int | None = None) -> bytes | None:
        if end is not None and end <= start:  # services refuse an empty range
            start, end, empty = 0, 1, True
        else:
            empty = False
        try:
            data = self._asked(name, lambda: self._got(name, start, end))
        except _NoObject:
            return None
        except _NoSuchRange:
            return b""
        return b"" if empty else data

    def _got(self, name: str, start: int, end: int | None) -> bytes:
        obstore = _obstore()
        if end is not None:
            return bytes(obstore.get_range(self._service, name, start=start, end=end))
        options = {"range": {"offset": start}} if start else None
        return bytes(obstore.get(self._service, name, options=options).bytes())

    def list(self, prefix: str, after: str = "") -> Iterator[Listed]:
        # A service lists whole folders: names without the prefix are filtered out here.
        folder = prefix.rpartition("/")[0]
        try:
            for page in _obstore().list(self._service, folder, offset=after or None):
                for entry in page:
                    if entry["path"].startswith(prefix):
                        modified = entry["last_modified"].timestamp()
                        yield Listed(entry["path"], entry["size"], modified)
        except Exception as error:
            raise self._failed(prefix, error) from None

    def delete(self, names: Iterable[str]) -> None:
        for name in names:
            try:
                self._asked(name, lambda name=name: _obstore().delete(self._service, name))  # type: ignore[misc]
            except _NoObject:
                pass

    def _asked(self, name: str, attempt: Callable[[], T]) -> T:
        """Returns the answer of the service; PlaceError if it fails."""
        exceptions = _obstore().exceptions
        try:
            return attempt()
        except PlaceError:
            raise
        except (exceptions.AlreadyExistsError, exceptions.PreconditionError):
            raise _NameTaken from None
        except Exception as error:
            text = str(error)
            missing = isinstance(error, FileNotFoundError | exceptions.NotFoundError)
            if missing and is_missing_key(text):
                raise _NoObject from None
            if code_in(text) == RANGE:
                raise _NoSuchRange from None
            raise self._failed(name, error) from None

    def _failed(self, name: str, error: Exception) -> PlaceError:
        where = f"{self.address}/{name}" if name else self.address
        return PlaceError(failure(where, str(error)))


class _NameTaken(Exception):
    """An object of that name exists already."""


class _NoObject(Exception):
    """Raised if no object has the name, although its bucket exists."""


class _NoSuchRange(Exception):
    """The range begins after the object's last byte."""


def _obstore() -> Any:
    with needed_by("a store in object storage"):
        import obstore
        import obstore.exceptions
        import obstore.store
    return obstore
