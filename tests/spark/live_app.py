"""An application for the tests of the live service: counts by key, and tells of each count."""

import millstream as ms

app = ms.App("live")
app.source("events", key="key")
app.output("counts")


@app.update("events", publishes="counts")
def count(event, slate):
    slate["n"] = slate.get("n", 0) + event.value["add"]
    yield ms.emit(value=slate["n"])
