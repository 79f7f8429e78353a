"""Looking through every durable file of a store: what is wrong, and how to mend it.

One module a kind of file; `store` goes through all of them. Nothing is changed, and the application
may run meanwhile: what is read is read as of the committed batch.

findings     what is said of a file, and the count of what was looked at
records      the small files with a checksum: store.json, epoch, progress, app.json, actions, ...
shards       the shards: every row, in a process of its own, and the fence files
meaning      what the rows say: slates, tables, timers, waiting events, against each other
logs         event logs
sources      the logs of files taken in
staging      output that is not published yet
"""
