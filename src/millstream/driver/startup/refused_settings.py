"""Finds what a run with given settings would refuse in a store, whatever losses are accepted.

`millstream plan` shows it beside the consequences of a changed application. Each check is the one
that a start makes, on logs that are only read. Brokers of Kafka are not asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing

from millstream.driver.inputs.kafka_input import KafkaInput
from millstream.driver.inputs.source_inputs import check_known, open_input, position_of
from millstream.driver.startup.addresses import addresses, check_places
from millstream.driver.startup.consequence import Consequence, Subject
from millstream.errors import MillstreamError
from millstream.kafka.topic import source_topic
from millstream.log.stream_logs import PlaceLogs
from millstream.model.source import Source
from millstream.model.workflow import Workflow
from millstream.settings.settings import Settings
from millstream.sources.address import KAFKA, Address
from millstream.sources.record_log import RecordLog
from millstream.stores.home import Home
from millstream.stores.progress import Progress


def refusals(
    workflow: Workflow,
    settings: Settings,
    home: Home,
    progress: Progress,
    logs: PlaceLogs | None = None,
) -> Iterator[Consequence]:
    """Yields what `run` would refuse. `home` has the lists of files of the sources; `logs` are the
    store's logs if it is in a place."""
    name = workflow.name
    yield from _refusal("store", name, lambda: home.fit(name, settings.storage.shards))
    yield from _refusal("store", name, lambda: check_places(settings, workflow.outputs))
    located = addresses(settings.addresses.sources, home.path)
    for source in workflow.sources:
        address = located[source.name]

        def check(source: Source = source, address: Address = address) -> None:
            _check_source(home, source, address, progress, logs)

        yield from _refusal("source", source.name, check)


def _check_source(
    home: Home, source: Source, address: Address, progress: Progress, logs: PlaceLogs | None
) -> None:
    """Raises an error if the source cannot go on at its position in what its address names."""
    position = position_of(progress, source.name)
    if address.format == KAFKA:
        record = home.source_log(source.name)
        if record.exists() and record.stat().st_size:
            topic = source_topic(address.path, address.options, f"source {source.name!r}")
            KafkaInput(topic, RecordLog(str(record), write=False)).close()
        return
    opened = open_input(home, source.name, address, source.text, logs=logs, position=position)
    with closing(opened):
        if position is not None:
            opened.bytes_between(opened.begin, position)
            check_known(home, source.name, opened, position)


def _refusal(subject: Subject, name: str, check: Callable[[], None]) -> Iterator[Consequence]:
    try:
        check()
    except MillstreamError as error:
        yield Consequence(subject, name, "refused", str(error), loss=True)
