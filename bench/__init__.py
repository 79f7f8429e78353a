"""Benchmarks: `python -m bench [names ...] [--quick]`, or `make bench`.

    keyed_updates   a Python update over 100,000 keys, beside Spark's own ways to do the same
    zipf            the same update over 1,000 skewed keys
    hot_topics      a map, two updates and timers (examples/hot_topics.py)
    latency         time from a file's arrival until its slate can be read, at 4,000 events a second
    growth          the same load over 10 thousand to 10 million slates
    live            over HTTP: slates read, events taken in, and how soon these can be read
    dump            a million slates over HTTP, in flat memory
    startup         a run over a hundred events, start to end, beside a bare Spark program
    s4              the evaluation of S4, rebuilt on a cluster of this machine (`make bench-s4`)
    imr             the evaluation of iMR, rebuilt (`make bench-imr`)
    feeds           the evaluation of Feeding Frenzy, rebuilt (`make bench-feeds`)
    peers           other stream processors on the same data (`make bench-peers`)

Each prints a table, says which bars it meets, and writes all figures, with the machine and the
commit, to `bench/results/<name>.json`. Everything that a ratio compares is measured in one run of
one case, one after the other, each in processes of its own (`apart`). The rate is that of the
batches after the first, so that neither Spark's start nor a cold JVM counts; the rate of the whole
run is given beside it. `cpu_others` is the share of the machine that other processes used: if it is
more than a few hundredths, the figures are noise.
"""
