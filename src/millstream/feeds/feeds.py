"""The component that users add to an application: `app.add(ms.feeds.Feeds(), name="feeds")`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from millstream.errors import DefinitionError
from millstream.feeds.options import FeedOptions
from millstream.feeds.placement import place

if TYPE_CHECKING:
    from millstream.model.app import AppDefinition


@dataclass(frozen=True, kw_only=True)
class Feeds(FeedOptions):
    """The feeds of an application. `FeedOptions` lists the settings."""

    def add_to(self, app: AppDefinition, **options: Any) -> None:
        """Adds the functions of these feeds to `app`. The only option is `name`."""
        name = options.pop("name", "feeds")
        if options:
            raise DefinitionError(
                f"feeds {name!r}: the only option is name=; got {', '.join(options)}"
            )
        place(app, self, name)
