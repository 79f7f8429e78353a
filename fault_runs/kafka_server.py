"""Runs real Kafka brokers for tests and benchmarks, by `scripts/kafka-server`.

    with kafka_brokers(folder) as brokers:
        topic = brokers.new_topic(partitions=6)
        run(f"--source clicks=kafka:{topic}?servers={brokers.servers}")

With `secure=True` a broker also has an address with SASL over TLS, and one with TLS that requires a
client's certificate. With three brokers, `kill` kills one as `kill -9` does, and `restart` starts
it again over its data.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

SCRIPT = Path(__file__).resolve().parent.parent / "scripts" / "kafka-server"
PATIENCE = 60.0
"""Seconds that a new topic may take until it has leaders."""


@dataclass(frozen=True, slots=True)
class KafkaSecurity:
    """The addresses and credentials for clients that must authenticate."""

    sasl_servers: str
    """The addresses that require a user and a password, over TLS: PLAIN and SCRAM-SHA-512."""
    user: str
    password: str
    """The password for PLAIN; SCRAM has no users until `add_scram_user`."""
    tls_servers: str
    """The addresses that require a client's certificate."""
    certificates: Path
    """The folder of ca.pem, client.pem and client.key."""


@dataclass(frozen=True, slots=True)
class KafkaBrokers:
    """Brokers that run, numbered from 1."""

    servers: str
    """Their addresses, such as `127.0.0.1:40123,127.0.0.1:40125`."""
    folder: Path
    processes: dict[int, int]
    """The process id of each running broker."""
    security: KafkaSecurity | None = None

    def new_topic(
        self, name: str = "", *, partitions: int = 1, config: Mapping[str, str] | None = None
    ) -> str:
        """Creates a topic, with a unique name if none is given; returns once it has leaders."""
        from confluent_kafka.admin import AdminClient
        from confluent_kafka.cimpl import NewTopic

        topic = name or f"topic-{uuid4().hex[:12]}"
        admin = AdminClient({"bootstrap.servers": self.servers})
        made = admin.create_topics(
            [NewTopic(topic, num_partitions=partitions, config=dict(config or {}))],
            operation_timeout=PATIENCE,
            request_timeout=PATIENCE,
        )
        made[topic].result()
        self.await_partitions(topic, partitions)
        return topic

    def add_partitions(self, topic: str, partitions: int) -> None:
        """Raises the number of partitions; returns once each has a leader."""
        from confluent_kafka.admin import AdminClient
        from confluent_kafka.cimpl import NewPartitions

        admin = AdminClient({"bootstrap.servers": self.servers})
        made = admin.create_partitions(
            [NewPartitions(topic, partitions)],
            operation_timeout=PATIENCE,
            request_timeout=PATIENCE,
        )
        made[topic].result()
        self.await_partitions(topic, partitions)

    def add_scram_user(self, user: str, password: str) -> None:
        """Adds a user; returns once it can log in with SCRAM-SHA-512."""
        from confluent_kafka.admin import (  # type: ignore[attr-defined]  # some are not listed
            AdminClient,
            ScramCredentialInfo,
            ScramMechanism,
            UserScramCredentialUpsertion,
        )

        kind = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        change = UserScramCredentialUpsertion(user, kind, password.encode())
        admin = AdminClient({"bootstrap.servers": self.servers})
        for made in admin.alter_user_scram_credentials([change]).values():
            made.result(PATIENCE)

    def await_partitions(self, topic: str, partitions: int) -> None:
        """Returns once every partition of the topic has a leader."""
        from confluent_kafka.admin import AdminClient

        admin = AdminClient({"bootstrap.servers": self.servers})
        for _ in range(int(PATIENCE / 0.05)):
            known = admin.list_topics(topic, timeout=PATIENCE).topics[topic].partitions
            if len(known) == partitions and all(p.leader > 0 for p in known.values()):
                return
            admin.poll(0.05)
        raise RuntimeError(f"topic {topic} has no leaders after {PATIENCE:g} s")

    def kill(self, broker: int) -> None:
        """Kills a broker as `kill -9` does; returns once it is gone."""
        process = self.processes.pop(broker)
        os.kill(process, signal.SIGKILL)
        _script("stop", str(process))

    def restart(self, broker: int) -> None:
        """Starts a killed broker again; returns once it accepts connections."""
        told = _variables(_script("restart", str(self.folder), str(broker)))
        self.processes[broker] = int(told["KAFKA_SERVER_PROCESS"])

    def stop(self) -> None:
        """Stops all running brokers."""
        if self.processes:
            _script("stop", *map(str, self.processes.values()))
            self.processes.clear()


def installed() -> None:
    """Fetch Kafka if it is not installed yet; takes a minute the first time."""
    _script("install")


@contextmanager
def kafka_brokers(
    folder: Path, brokers: int = 1, *, heap: str = "256m", secure: bool = False
) -> Iterator[KafkaBrokers]:
    """Starts brokers at free ports, over an empty folder; stops them when the block is left."""
    environ = {"KAFKA_SERVER_HEAP": heap, "KAFKA_SERVER_SECURE": "1" if secure else ""}
    told = _variables(_script("start", str(folder), str(brokers), **environ))
    processes = [int(process) for process in told["KAFKA_SERVER_PROCESSES"].strip("'").split()]
    running = KafkaBrokers(
        told["KAFKA_SERVERS"],
        folder,
        dict(enumerate(processes, 1)),
        _security(told) if secure else None,
    )
    try:
        yield running
    finally:
        running.stop()


def _security(told: Mapping[str, str]) -> KafkaSecurity:
    return KafkaSecurity(
        told["KAFKA_SASL_SERVERS"],
        told["KAFKA_USER"],
        told["KAFKA_PASSWORD"],
        told["KAFKA_TLS_SERVERS"],
        Path(told["KAFKA_CERTIFICATES"]),
    )


def _variables(said: str) -> dict[str, str]:
    return dict(line.removeprefix("export ").split("=", 1) for line in said.splitlines())


def _script(*arguments: str, **environ: str) -> str:
    done = subprocess.run(
        [str(SCRIPT), *arguments], capture_output=True, env={**os.environ, **environ}
    )
    if done.returncode:
        raise RuntimeError(
            f"{shlex.join(['scripts/kafka-server', *arguments])} failed: "
            f"{done.stderr.decode(errors='replace')[-2_000:]}"
        )
    return done.stdout.decode()
