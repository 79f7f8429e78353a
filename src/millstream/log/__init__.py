"""The embedded event log: records on disk in order, one writer process, any number of readers.

A log is a directory:

    lock                held by the writer, with its process number inside
    end                 how far the log is on disk: what readers may read
    <20>-<20>.log       segments, named by the offset and the record number of their first byte
    readers/NAME.json   how far a reader has committed: retention does not go past it

and each segment is a sequence of blocks, one for each append. A position is `[offset, records]`: a
logical byte offset over all segments, always where a block begins or the log ends, and the number
of records before it. `[0, 0]` is where every log begins.

blocks      the bytes of a block, and walking through a file of them
segments    the files: listing, names, the `end` file
writer      appending: a group of entries is one block and one sync; crash, full disk, roll
recovery    what a log holds when a writer opens it, after a crash too
tags        idempotency: what a tag's first append gave
retention   which segments may go
readers     how far readers have committed
reader      reading: positions, budgets, splits, blocks, and finding a record by its number
marks       block boundaries met so far, sparse, so that a search begins near its goal
"""
