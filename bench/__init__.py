"""Benchmarks: `python -m bench [names ...] [--quick]`, or `make bench`.

    keyed_updates   a Python update over 100,000 keys, beside Spark's own ways to do the same
    zipf            the same over 1,000 skewed keys
    hot_topics      a map, two updates and timers (examples/hot_topics.py)
    latency         from a file's arrival to its slate being readable, at 4,000 events a second
    growth          the same load over 10 thousand to 10 million slates
    live            over HTTP: slates read, events taken in, and how soon they can be read
    dump            a million slates over HTTP, in flat memory
    startup         a run over a hundred events, start to end, beside a bare Spark program
    s4              the evaluation of S4, rebuilt on a cluster of this machine (`make bench-s4`)
    imr             the evaluation of iMR, rebuilt (`make bench-imr`)
    feeds           the evaluation of Feeding Frenzy, rebuilt (`make bench-feeds`)

Each prints a table, says which bars it holds, and writes all figures, with the machine and the
commit, to `bench/results/<name>.json`. Everything that a ratio compares is measured in one run of
one case, one after the other, each in processes of its own (`apart`). The rate is that of the
batches after the first, so that neither Spark's start nor a cold JVM counts; the whole run is given
beside it. `cpu_others` says how much of the machine went to processes that are not ours: where
it is more than a few hundredths, the figures are noise.
"""
