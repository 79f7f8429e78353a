"""Checks every durable file of a store: reports what is wrong, and how to repair it.

There is one module for each kind of file; `store` runs all of them. Nothing is changed, and the
application may run meanwhile: rows are read as of the committed batch.

findings         the findings about files, and counts of what was checked
records          small files with a checksum: store.json, epoch, progress, app.json, actions, ...
shards           the shards: every row, in a child process, and the fence files
row_consistency  the content of rows: slates, tables, timers and waiting events agree
room             the order of slates of updates with limited room
logs             event logs, and that those exist which the committed batches need
sources          the logs of files taken in
staged_output    output that is not published yet
output_folders   what sinks have written outside of the store
place_objects    the objects of a shared store
"""
