"""The options of a run on a cluster: the master, Spark's own settings, secrets and encryption.

Mostly pure functions: wrong options are refused here, before Spark is loaded.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from millstream.errors import DefinitionError

SECRET = "MILLSTREAM_SPARK_SECRET"
"""The variable that holds the secret of a standalone cluster, if no file does."""
INSTALLED = "installed"
"""Given instead of a runtime archive: the executors' Python has everything installed."""
MasterKind = Literal["local", "standalone", "yarn", "kubernetes"]
_HOST = r"[A-Za-z0-9._-]+:\d{1,5}"
_MASTERS: dict[MasterKind, re.Pattern[str]] = {
    "local": re.compile(r"local(\[[^\]]+\])?"),
    "standalone": re.compile(rf"spark://{_HOST}(,{_HOST})*"),
    "yarn": re.compile("yarn"),
    "kubernetes": re.compile(r"k8s://(https?://)?[A-Za-z0-9._:\[\]-]+(/[A-Za-z0-9._/-]*)?"),
}
MASTERS = (
    "local[*], local[4], spark://HOST:PORT (or several, as in spark://HOST:PORT,HOST:PORT), yarn, "
    "or k8s://HOST:PORT"
)
IMAGE = "spark.kubernetes.container.image"
OWN = {
    "spark.master": "it is --master",
    "spark.app.name": "it is the application's",
    "spark.submit.deployMode": "the driver is this process",
    "spark.driver.memory": "it is --memory",
    "spark.driver.host": "it is --listen",
    "spark.driver.bindAddress": "it is --listen",
    "spark.default.parallelism": "it is --tasks",
    "spark.pyspark.python": "it is --python",
    "spark.pyspark.driver.python": "it is the Python that runs this command",
    "spark.executorEnv.PYTHONPATH": "the runtime archive's folder is on it; see --runtime",
    "spark.python.daemon.module": "the workers' daemon is Millstream's",
    "spark.python.worker.reuse": "workers keep the open store between batches",
    "spark.python.unix.domain.socket.enabled": "over TCP each task would wait for 40 ms",
    "spark.python.unix.domain.socket.dir": "a folder that only this user may enter is made",
    "spark.speculation": "two attempts of a task at once would only fence each other off",
    "spark.shuffle.reduceLocality.enabled": "a shard's task must run where its copy is",
    "spark.authenticate": "it is on with --listen, unless --no-encrypt is given",
    "spark.authenticate.secret": f"it is --secret-file, or {SECRET}",
    "spark.network.crypto.enabled": "it is on with --listen, unless --no-encrypt is given",
    "spark.io.encryption.enabled": "it is on with --listen, unless --no-encrypt is given",
}
"""Settings of Spark that a user may not give, and why."""


def master_kind(master: str) -> MasterKind | None:
    """Returns the kind of master that an address names; None if the address is invalid.

    >>> [master_kind(url) for url in ("local[2]", "spark://a:7077,b:7077", "yarn", "mesos://a:1")]
    ['local', 'standalone', 'yarn', None]
    """
    return next((kind for kind, form in _MASTERS.items() if form.fullmatch(master)), None)


def spark_settings(value: Any, where: str) -> dict[str, str]:
    """Returns Spark's settings by full name, from a mapping that may be nested as in TOML.

    >>> spark_settings({"executor": {"cores": 2}, "spark.yarn.queue": "fast"}, "[spark]")
    {'spark.executor.cores': '2', 'spark.yarn.queue': 'fast'}
    """
    if not isinstance(value, Mapping):
        raise DefinitionError(
            f"{where} must be names and values of Spark's settings; got {value!r}"
        )
    settings: dict[str, str] = {}
    for name, text in _flat(value, where):
        name = name if name.startswith("spark.") else f"spark.{name}"
        if name in OWN:
            raise DefinitionError(
                f"{where}: {name} must be left to Millstream: {OWN[name]}; got {text!r}"
            )
        settings[name] = text
    return settings


def _flat(value: Mapping[str, Any], where: str, above: str = "") -> Iterator[tuple[str, str]]:
    for key, inner in value.items():
        name = f"{above}{key}"
        if isinstance(inner, Mapping):
            yield from _flat(inner, where, f"{name}.")
        elif isinstance(inner, bool):
            yield name, str(inner).lower()
        elif isinstance(inner, str | int | float):
            yield name, str(inner)
        else:
            raise DefinitionError(f"{where}: {name} must be text, a number or true or false")


def check_cluster(values: Mapping[str, Any], environ: Mapping[str, str]) -> None:
    """Refuses settings that do not go together; `values` are the parsed settings of a run."""
    master = values.get("master", "local[*]")
    kind, listen = master_kind(master), values.get("listen", "")
    if kind == "local":
        for name in ("listen", "secret_file", "python", "runtime"):
            if values.get(name):
                raise DefinitionError(
                    f"{name.replace('_', '-')} is for a cluster, such as --master spark://HOST:"
                    f"PORT; the master is {master}, and its tasks run on this machine: leave it out"
                )
        return
    if not values.get("place"):
        if kind != "standalone" or listen:
            raise DefinitionError(
                f"store must be a shared one, such as s3://BUCKET/PREFIX or shared:DIR, for the "
                f"master {master}, whose tasks run on other machines; got the folder "
                f"{values['store']}"
            )
        return
    if kind != "standalone" and not listen:
        raise DefinitionError(
            f"listen must be an address of this machine that the executors of {master} reach, as "
            "in --listen 10.0.0.5; got none"
        )
    if kind == "kubernetes" and IMAGE not in values.get("spark", {}):
        raise DefinitionError(
            f"a master k8s:// needs the image of the executors, as in --conf {IMAGE}=REGISTRY/"
            "spark:4.3; got none"
        )
    if listen and kind == "standalone" and values.get("encrypt", True):
        secret_of(values.get("secret_file"), environ)


def secret_of(file: Path | None, environ: Mapping[str, str]) -> str:
    """Returns the secret that master, workers and driver of a standalone cluster share."""
    if file is None:
        secret = environ.get(SECRET, "")
        if not secret.strip():
            raise DefinitionError(
                "a driver that listens on the network (--listen) needs the secret that the master "
                f"and the workers have as spark.authenticate.secret: give --secret-file FILE, or "
                f"{SECRET}; or say --no-encrypt, and anyone who reaches the port can run code here"
            )
        return secret.strip()
    try:
        secret = file.read_text("utf-8").strip()
        shared = os.stat(file).st_mode & 0o077
    except (OSError, UnicodeDecodeError) as error:
        raise DefinitionError(f"secret-file {file}: cannot be read: {error}") from None
    if not secret:
        raise DefinitionError(f"secret-file {file} must hold the secret; it is empty")
    if shared:
        raise DefinitionError(
            f"secret-file {file} must be readable by its owner alone; chmod 600 {file}"
        )
    return secret
