"""The flags of the HTTP server, for `run` and `serve`.

The token is never an argument on the command line, where every user of the machine could read it:
it comes from a file or from MILLSTREAM_TOKEN.
"""

from __future__ import annotations

from pathlib import Path

import click

from millstream.cli.option_groups import option_group
from millstream.server.options import PORT

serving_options = option_group(
    click.option(
        "--allow-host",
        "hosts",
        multiple=True,
        callback=lambda ctx, param, given: given or None,
        metavar="NAME",
        help="A host name that the server accepts besides its own. Repeatable.",
    ),
    click.option("--host", metavar="NAME", help="The address to listen on.  [default: 127.0.0.1]"),
    click.option("--port", metavar="N", help=f"The port; 0: any free port.  [default: {PORT}]"),
    click.option(
        "--trusted-proxy",
        "trusted_proxies",
        multiple=True,
        callback=lambda ctx, param, given: given or None,
        metavar="ADDRESS",
        help="A proxy, or a network of them, whose X-Forwarded-For is trusted. Repeatable.",
    ),
    click.option(
        "--access-log",
        metavar="FILE",
        help="Log every request as a line of JSON; - for stderr.",
    ),
    click.option(
        "--tokens",
        type=click.Path(path_type=Path),
        help="A file of tokens, each with its rights: see millstream tokens.",
    ),
    click.option(
        "--token-file",
        type=click.Path(path_type=Path),
        help="A file with the secret of every request; or MILLSTREAM_TOKEN holds it.",
    ),
    click.option(
        "--tls-cert",
        type=click.Path(path_type=Path),
        help="Serve HTTPS with this certificate.",
    ),
    click.option("--tls-key", type=click.Path(path_type=Path), help="The certificate's key."),
    click.option(
        "--connections",
        metavar="N",
        help="The most connections; agents have up to 3 each.  [default: 4096]",
    ),
    click.option(
        "--fan-out",
        metavar="N",
        help="The most agents that send to the root itself.  [default: 32]",
    ),
)
"""Adds the options of the HTTP server to a command."""
