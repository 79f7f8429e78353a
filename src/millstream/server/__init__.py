"""The live service: a store over HTTP, in a process of its own that never runs user code.

    process       binds, locks the store, runs uvicorn until told to stop
    child         starts that in another process; __main__ is what it starts
    options       what a server is told
    lock          who serves a store, and where
    descriptors   how many connections there may be
    connection    a client's connection: limits on heads, on time, on clients that take nothing
    guard         looks at every request first: rate, Host, Origin, token, body
    app           finds the route (paths), turns what it raises into an answer (answers)
    service       what the routes share; open_store is the store, followed as it changes
    limits        token buckets and slots, pure

Routes, each module with one function `routes`:

    slates        which there are, one, a page        dump          all of them
    watch         one as it changes                   streams       send events; list, page, tail
    status        rates, lags, history, the graph     metrics       the same for Prometheus
    page_files    the live page                       health        GET /healthz
    jobs          windows and scoreboards; job_tables reads them from the store
    news          what agents are told of a job
    agents        who is there, who is whose parent, what they are to run; packages: the code
    openapi       the document of all; its content is in operations and its like

Behind them:

    catalogue     which streams there are; numbered reads their logs, for all who ask
    records       a body becomes records; appender writes them to the logs, many requests at once
    sampler       looks at the progress record; samples keeps what it saw, and makes rates of it
    events        server-sent events, over streamed: an answer in pieces

A request costs no thread and no timer. What takes long is streamed (streamed, events) or read in a
few threads beside the event loop.
"""
