"""The requests and answers of the HTTP server, each declared once.

A message is a `msgspec.Struct`. The handler that answers builds it, the client decodes it, and the
OpenAPI document is generated from it (`server.openapi`). A field without a default is always on the
wire; one with a default may be left out.

    streams    sending events, listing streams, their records and tails
    slates     updates, slates, pages, dumps and watches
    feeds      pages of feeds, follows, live events
    jobs       jobs over windows
    letters    retries of dead letters
    status     GET /status, /healthz and /history
    errors     the answer to a refused request

The messages between agents and the root are in `trees.messages`.
"""
