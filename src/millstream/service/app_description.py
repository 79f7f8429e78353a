"""Describes an application in its store, for servers of the store, which do not load its code."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from millstream.counted_nouns import counted, verb
from millstream.model.app import AppDefinition
from millstream.notices import say
from millstream.settings.settings import Settings

if TYPE_CHECKING:
    from millstream.stores.home import Home


def describe_app(app: AppDefinition, settings: Settings) -> None:
    """Writes the application's description into the store, for the server, and registers it as a
    reader of its event logs: retention must wait for it even before its first run."""
    from millstream.actions.address import parse_action_address
    from millstream.description import describe, write_description
    from millstream.driver.inputs.source_inputs import open_input, position_of, register
    from millstream.driver.startup.addresses import addresses, in_store
    from millstream.driver.startup.compatibility import check_parts
    from millstream.places.place_address import place_at
    from millstream.sources.address import LOG
    from millstream.stores.home import Home
    from millstream.stores.soft import read_committed, read_durable

    inputs = addresses(settings.addresses.sources, settings.storage.store)
    home = Home.open(settings.storage.store)
    workflow = app.checked()
    check_parts(workflow.parts, home, read_committed(home.path))
    progress = read_durable(home.path)
    texts = {source.name: source.text for source in workflow.sources}
    if settings.storage.place:  # the driver registers with the logs there, before its first commit
        inputs = {name: in_store(address, home.path) for name, address in inputs.items()}
    else:
        for name, address in inputs.items():
            with closing(open_input(home, name, address, texts[name])) as source:
                register(home, name, source, position_of(progress, name))
            if address.format != LOG:
                _warn_of_unread(home, name)
    sinks = addresses(settings.addresses.sinks, settings.storage.store)
    outputs = {name: str(address) for name, address in sinks.items()}
    for name, text in settings.addresses.actions.items():
        outputs[name] = parse_action_address(text, f"action {name!r}").shown
    described = describe(workflow, {name: str(inputs[name]) for name in inputs}, outputs)
    if settings.package is not None:
        from millstream.service.app_packages import with_package

        place = place_at(settings.storage.place) if settings.storage.place else None
        described = with_package(described, settings.package, settings.storage.store, place)
    write_description(settings.storage.store, described)


def _warn_of_unread(home: Home, source: str) -> None:
    """Warns of events that were sent to a source which now reads elsewhere: nobody reads them."""
    from millstream.log.reader import LogReader

    with closing(LogReader(home.log_of(source))) as log:
        sent = log.end[1] - log.start[1]
    if sent:
        records = f"{counted(sent, 'record')} that {verb(sent, 'was', 'were')} sent to its log"
        say(
            f"source {source!r}: {records} {verb(sent, 'is', 'are')} not read by this run, which "
            f"reads elsewhere; --source {source}=log takes {verb(sent, 'it', 'them')} in"
        )
