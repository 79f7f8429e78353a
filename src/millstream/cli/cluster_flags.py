"""The flags of `run` for Spark's master and a cluster."""

from __future__ import annotations

import click

from millstream.cli.option_groups import option_group, pairs

cluster_options = option_group(
    click.option(
        "--master",
        help="Spark's master: local[N], spark://HOST:PORT, yarn, k8s://HOST:PORT.  "
        "[default: local[*]]",
    ),
    click.option(
        "--conf",
        "spark",
        multiple=True,
        metavar="NAME=VALUE",
        callback=pairs("spark.executor.cores=2", may_be_empty=True),
        help="A setting of Spark itself. Repeatable.",
    ),
    click.option(
        "--listen",
        metavar="ADDRESS",
        help="The address at which remote executors reach this machine.",
    ),
    click.option("--secret-file", metavar="FILE", help="The secret of a standalone cluster."),
    click.option(
        "--encrypt/--no-encrypt",
        default=None,
        help="Use a secret and encryption between driver and executors.  [default: with --listen]",
    ),
    click.option(
        "--python",
        metavar="COMMAND",
        help="The Python of executors on other machines.  [default: pythonX.Y, this version]",
    ),
    click.option(
        "--runtime",
        metavar="FILE|installed",
        help="The code for executors: see `pack --runtime`.  [default: packed by the run]",
    ),
)
"""Adds the options for the master and the cluster to a command."""
