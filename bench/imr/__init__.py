"""The evaluation of iMR (Logothetis, Trezzo, Webb, Yocum 2011), rebuilt: `make bench-imr`.

Nodes are agent processes on this machine, the root is the application on Spark. Where only the set
of panes decides what comes out (errors by specification, coverage of intervals), the same code for
panes is called in this process, over generated logs.

    plan                     which experiments there are, and how much of everything
    texts, writing           the logs: words skewed over nodes; files that grow as time goes by
    jobs_app                 the application: the jobs that an experiment asks for
    nodes, live, watching    agents, a run of the application with them, what it said and when
    burning                  the other work on a node
    scaling, waiting, example_latency           experiments with processes
    clocks, crowd, failures
    pressed, shedding, beside                   those of a node that has too little time
    lacking                  the agent without one of its parts, to show what that is worth
    errors, covering, drawn_windows, crossover  experiments with panes alone
    judging                  rows as figures and bars
    cases                    the experiments, for `bench.experiments`, which runs them
    page, tables, plots, paper  what docs/papers/imr-evaluation.md shows, beside what the paper has

Run as the other benchmarks are: `python -m bench imr [--quick] [--only fig8 ...]`; then
`python -m docs.build` fills in the page and draws its pictures.
"""
