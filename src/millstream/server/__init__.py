"""The live service: serves a store over HTTP, in its own process, which never runs user code.

    process       binds, locks the store, runs uvicorn until it is stopped
    child         starts a server in another process; __main__ is that process's entry point
    options       the options of a server
    lock          records which server serves a store, and at which address
    descriptors   limits the number of connections
    connection    a client's connection: limits on heads, on time, on clients that do not read
    tls_entry     the same connection before its TLS handshake is over
    guard         checks every request first: rate, Host, Origin, token, body
    token_check   the tokens, read again when they change; grants: what each token allows
    access_log    one line per request; client_address: the client behind a proxy
    connection_room, unread_answers    choose which clients to cut off when there are too many
    app           finds the route (paths), turns exceptions into answers (answers)
    service       state that the routes share; open_store follows the store as it changes
    limits        token buckets and slots, pure

Routes. Each module has one function `routes`:

    slates        lists updates, one slate, a page    dump          all slates of an update
    watch         one slate as it changes             streams       send events; list, page, tail
    status        rates, lags, history, the graph     metrics       the same for Prometheus
    page_files    the live page                       health        GET /healthz
    jobs          windows and scoreboards; job_tables reads them from the store
    retries       gives dead letters to their functions again
    news          tells agents what has changed in a job
    agents        the live agents, their parents, the jobs they run; packages: the jobs' code
    openapi       the OpenAPI document; its content is in operations and similar modules

Behind the routes:

    catalogue     the streams of a store; numbered reads their logs, shared by all readers
    large_records checks long records without building their values
    records       turns a body into records; appender writes many requests to the logs at once
    sampler       reads the progress record; samples keeps the readings and computes rates
    attention     finds what an operator should look at in a status; lag_trend: a growing lag
    events        server-sent events, built on streamed: an answer sent in pieces

A request costs no thread and no timer. Long answers are streamed (streamed, events), and long reads
run in a few threads beside the event loop.
"""
