"""An application whose slates show what was lost or counted twice: one slate an event."""

import millstream as ms

app = ms.App("sent")
app.source("events", key="id")
app.output("seen")


@app.update("events", publishes="seen")
def count(event, slate):
    slate["n"] = slate.get("n", 0) + 1
    yield ms.emit(value=slate["n"])
