"""The evaluation of S4 (Chauhan, Chowdhury, Makaroff 2012), section IV, rebuilt: `make bench-s4`.

    words       the data: 100-character words, with the exact truth of what must be counted
    words_app   the application: WordReceiver, Eleven and Three, Aggregation, as elements
    plan        which runs there are, and how much of everything
    running     one run: a Spark cluster, the application as users start it, whoever sends, kills
    watching    what the processes of each worker used, and what was committed when
    truth       what a run left, against the truth: processed, lost, doubled
    rows        the runs as rows, figures and bars
    cases       the experiments
    page, tables, plots, paper  what docs/papers/s4-evaluation.md shows of bench/results/s4.json,
                                beside what the paper has

Run as the other benchmarks are: `python -m bench s4 [--quick] [--only files ...]`; then
`python -m docs.build` fills in the page and draws its pictures.
"""
