"""The evaluation of Feeding Frenzy (Silberstein, Terrace, Cooper, Ramakrishnan 2010), rebuilt:
`make bench-feeds`.

    plan                     which experiments there are, and how much of everything
    network                  networks in the shape of the paper's Table 2, posts and looks by rate
    laid                     such a network in the store, as it is when all has settled
    driven                   the engine in this process: what posts and reads cost in CPU time
    costs                    policies over the same posts and reads; H and L; Figures 4, 5 and 9
    knobs                    the threshold, what is decided and moved by it: Figures 6, 7 and 8
    flash                    Figure 10
    followed                 a producer that very many follow
    reads, looking           feeds over HTTP on Spark while posts come in; feeds_app is read
    correct, truth           reads among changes and failures, against brute force
    judging                  rows as figures and bars
    cases                    the experiments, for `bench.experiments`, which runs them
    page, tables, plots, paper  what docs/papers/feeding-frenzy-evaluation.md shows

Run as the other benchmarks are: `python -m bench feeds [--quick] [--only fig4 ...]`; then
`python -m docs.build` fills in the page and draws its pictures.
"""
