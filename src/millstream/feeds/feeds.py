"""The part that users add to an application: `app.add(ms.feeds.Feeds(), name="feeds")`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from millstream.errors import DefinitionError
from millstream.feeds.options import Options
from millstream.feeds.placing import place

if TYPE_CHECKING:
    from millstream.model.app import App


@dataclass(frozen=True, kw_only=True)
class Feeds(Options):
    """Feeds of an application; see `Options` for what may be said of them."""

    def add_to(self, app: App, **options: Any) -> None:
        """Add the functions of these feeds; the one option is their `name`."""
        name = options.pop("name", "feeds")
        if options:
            raise DefinitionError(
                f"feeds {name!r}: the only thing to say of their place is name=; got "
                f"{', '.join(options)}"
            )
        place(app, self, name)
