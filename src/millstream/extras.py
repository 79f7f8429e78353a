"""Libraries that only some parts of Millstream need, and the extras that install them.

A client, an agent or a reader of slates installs Millstream alone; Spark, object storage, Kafka and
databases are extras.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from millstream.errors import MissingExtra

EXTRA_OF = {
    "cassandra": "cassandra",
    "confluent_kafka": "kafka",
    "cryptography": "packages",
    "obstore": "s3",
    "pandas": "spark",
    "psycopg": "postgres",
    "py4j": "spark",
    "pyarrow": "spark",
    "pyspark": "spark",
}
"""The extra that installs each library, by the library's import name."""


@contextmanager
def needed_by(feature: str) -> Iterator[None]:
    """For a block that imports from extras: MissingExtra says what to install for `feature`."""
    try:
        yield
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        if library not in EXTRA_OF:
            raise
        raise MissingExtra(
            f"{feature} needs the library {library}, which is not installed; install it with: "
            f"pip install 'millstream[{EXTRA_OF[library]}]'"
        ) from error
