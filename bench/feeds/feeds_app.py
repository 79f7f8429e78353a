"""The application of the reads over HTTP: feeds as they are unless told otherwise."""

from __future__ import annotations

import millstream as ms

app = ms.App("social")
app.add(ms.feeds.Feeds(), name="feeds")
