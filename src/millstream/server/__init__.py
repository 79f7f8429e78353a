"""The live service: serves a store over HTTP, in its own process, which never runs user code.

    process       binds, locks the store, runs uvicorn until it is stopped
    child         starts a server in another process; __main__ is that process's entry point
    options       the options of a server
    lock          records which server serves a store, and at which address
    app           finds the route, turns exceptions into answers
    service       state that the routes share; open_store follows the store as it changes
    mirror_process    follows a shared store for a server
    page_files    the live page; its files are in page/

Every request comes through these folders:

    http/         connection: a client's connection, with limits on heads, on time, on clients that
                  do not read; tls_entry: the same before its TLS handshake is over;
                  connection_room, unread_answers, descriptors: which clients to cut off when there
                  are too many; paths: routes by their raw path; answers, streamed,
                  server_sent_events: the forms of an answer
    access/       guard: checks every request first: rate, Host, Origin, token, body; grants: what
                  each token allows; token_check: tokens, read again when they change;
                  client_address: the client behind a proxy; limits: token buckets and slots;
                  access_log: one line per request

Routes and what is behind them. A module with routes has one function or method `routes`:

    slates/       slate_routes: lists updates, one slate, a page; dump: all slates of an update;
                  watch: one slate as it changes
    streams/      stream_routes: send events, list streams, page through their records; tail:
                  records as they come; catalogue: the streams of a store; records, large_records:
                  turn a body into records; block_check: checks its lines together; appender:
                  writes many requests to the logs at once; numbered_records: reads their logs,
                  shared by all readers; topics: Kafka topics; retries: retries dead letters
    status/       status_routes: rates, lags, history, the graph; metrics: the same for Prometheus;
                  health; sampler, samples: progress and its rates; attention, lag_trend: what an
                  operator should look at
    jobs/         job_routes, job_tables: windows and scoreboards; job_news: tells agents what has
                  changed in a job; agent_routes: the live agents; package_routes: the jobs' code
    feeds/        feed_routes: pages of a feed, follows; feed_live: a feed as it changes;
                  feed_writes, feed_stamps, feed_log: records on their way in; feed_networks,
                  feed_overview, feed_costs, feed_views: the application's feeds, and their cost
    openapi/      openapi_document: the document; its content is in operations, job_operations and
                  feed_operations

A request costs no thread and no timer. Long answers are streamed, and long reads run in a few
threads beside the event loop.
"""
