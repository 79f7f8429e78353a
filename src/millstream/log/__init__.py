"""The embedded event log: records on disk in order, one writer process, any number of readers.

A log is a directory:

    lock                held by the writer, with its process number inside
    end                 the position up to which the log is on disk: readers may read so far
    <20>-<20>.log       segments, named by the offset and the record number of their first byte
    readers/NAME.json   the position that a reader has committed: retention does not go past it

and each segment is a sequence of blocks, one for each append. A position is `[offset, records]`: a
logical byte offset over all segments, which is always the start of a block or the end of the log,
and the number of records before it. Every log begins at `[0, 0]`.

blocks      the bytes of a block, and walking through a file of them
segments    the files: listing, names, the `end` file
writer      appends: a group of entries is one block and one sync; crash, full disk, roll
recovery    finds out what a log holds when a writer opens it, after a crash too
tags        idempotency: the result of each tag's first append
retention   decides which segments are removed
readers     the positions that readers have committed
reader      reads: positions, budgets, splits, blocks, and finding a record by its number
marks       a sparse index of block boundaries seen so far, so that a search starts near its goal
entries     the entries of an append, and which of them are new

A log of a shared store is in a place, in pieces (`places.piece_log`) of the same blocks at the same
positions; any number of writers append to it.

place_writer    appends to it
place_readers   the positions that its readers have committed
mirror          local segments that follow it; `reader` reads them
poured_record   what was poured into the log of a source
mirror_tags     the tags in a mirror, for a writer on the same host
placed_blocks   reads a part of it, on any host
logs_follower   follows logs into mirrors, in threads
stream_logs     the logs of a store's streams, in a folder or in a place
"""
