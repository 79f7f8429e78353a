"""Spark's settings for a cluster, as a pure function of the run's settings.

docs/operations.md gives the reason for each.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from millstream.settings.cluster_options import INSTALLED, master_kind, secret_of
from millstream.settings.setting_parts import ClusterSettings

ARCHIVE = "millstream-runtime"
"""The folder into which an executor unpacks the runtime archive."""
SECRET = "spark.authenticate.secret"


@dataclass(frozen=True, slots=True)
class ClusterAccess:
    """The settings by which a cluster's driver and executors find and trust each other."""

    listen: str = ""
    """The driver's address; empty if the executors are on this machine."""
    encrypt: bool = True
    secret: str = field(default="", repr=False)
    python: str = ""
    """The executors' Python; empty: the same as this process's."""
    runtime: Path | None = None
    """The archive with the code to send to executors; None if they have it installed."""
    spark: Mapping[str, str] = field(default_factory=dict)
    """Spark settings of the user."""

    @classmethod
    def of(cls, settings: ClusterSettings, environ: Mapping[str, str]) -> ClusterAccess:
        """Returns the access according to the settings of a run."""
        secret, python = "", settings.python
        if settings.listen:
            python = python or f"python{sys.version_info.major}.{sys.version_info.minor}"
            if settings.encrypt and master_kind(settings.master) == "standalone":
                secret = secret_of(settings.secret_file, environ)
        packed = settings.runtime not in ("", INSTALLED)
        runtime = Path(settings.runtime).absolute() if packed else None
        return cls(
            settings.listen,
            settings.encrypt,
            secret,
            python,
            runtime,
            settings.spark,
        )


def cluster_conf(access: ClusterAccess, memory: str, java: str, path: str) -> dict[str, str]:
    """Returns the settings for any master except a local one.

    `java` are the options of the JVMs; `path` is the PYTHONPATH of executors on this machine.
    """
    conf = {
        "spark.executor.memory": memory,
        "spark.executor.extraJavaOptions": java,
        # Only the seats decide where a shard's task runs.
        "spark.shuffle.reduceLocality.enabled": "false",
        # A lost executor refuses connections at once, and a lost host does not answer: in neither
        # case is there much to wait for. A fetch that fails is run again.
        "spark.shuffle.io.retryWait": "500ms",
        "spark.shuffle.io.maxRetries": "2",
        "spark.shuffle.io.connectionTimeout": "6s",
        "spark.shuffle.io.connectionCreationTimeout": "2s",
        # How long a task waits for its host when that is busy, or was lost during the stage.
        "spark.locality.wait": "3s",
        # A host that lost power closes no connections: it just falls silent. By default Spark would
        # wait two or three minutes for its tasks, and the executors of a lost driver would keep
        # their cores from a standby for ten.
        "spark.network.timeout": "10s",
        "spark.network.timeoutInterval": "1s",
        # Requests to the driver may take longer than that while it is busy, and an executor that
        # loses its connection to the driver ends.
        "spark.rpc.askTimeout": "30s",
        "spark.rpc.lookupTimeout": "30s",
        "spark.rpc.io.connectionTimeout": "30s",
        "spark.executor.heartbeatInterval": "2s",
        "spark.executor.heartbeat.maxFailures": "15",
        # A task that fails twice on a host (because of a full disk, say) is tried on another.
        "spark.excludeOnFailure.taskAndStage.enabled": "true",
        "spark.excludeOnFailure.task.maxTaskAttemptsPerExecutor": "2",
        "spark.excludeOnFailure.task.maxTaskAttemptsPerNode": "2",
        "spark.excludeOnFailure.stage.maxFailedTasksPerExecutor": "1000",
        "spark.excludeOnFailure.stage.maxFailedExecutorsPerNode": "1000",
        "spark.scheduler.excludeOnFailure.unschedulableTaskSetTimeout": "5s",
        # Several executors may be lost in one batch.
        "spark.stage.maxConsecutiveAttempts": "10",
        # A host that is drained hands over its shuffled rows; seats are placed elsewhere anyway.
        "spark.decommission.enabled": "true",
        "spark.storage.decommission.enabled": "true",
        "spark.storage.decommission.shuffleBlocks.enabled": "true",
        "spark.storage.decommission.rddBlocks.enabled": "false",
    }
    if access.runtime is not None:
        conf["spark.executorEnv.PYTHONPATH"] = f"./{ARCHIVE}"
    elif not access.listen:
        conf["spark.executorEnv.PYTHONPATH"] = path
    if access.listen:
        conf["spark.driver.host"] = conf["spark.driver.bindAddress"] = access.listen
        if access.encrypt:
            conf |= _encrypted(access.secret)
    return conf


def _encrypted(secret: str) -> dict[str, str]:
    """Returns settings that require the secret to connect, and encrypt all traffic and spills."""
    conf = {
        "spark.authenticate": "true",
        "spark.network.crypto.enabled": "true",
        "spark.network.crypto.saslFallback": "false",
        "spark.network.crypto.authEngineVersion": "2",
        "spark.network.crypto.cipher": "AES/GCM/NoPadding",
        "spark.io.encryption.enabled": "true",
    }
    return conf | ({SECRET: secret} if secret else {})
