"""Hosts with their own addresses and disks on this machine: network namespaces on a bridge.

    with hosts(folder, ["master", "worker"]) as network:
        master, worker = network["master"], network["worker"]
        server = master.start(["python3", "-m", "http.server", "--bind", master.address], log)
        worker.cut_off()

The bridge is in a namespace of its own, and no host has a route to anywhere else. So their subnet
is private, and networks of several runs do not interfere. Processes share this machine's file
system; a host's disk is a folder, to which TMPDIR and other variables of the caller point.

The names of the namespaces identify the process that created them. The next run removes what a
killed run has left behind.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from fault_runs.processes import Started

PREFIX = "millstream"
SUBNET = "10.77.0"
SWITCH, BRIDGE = "switch", "bridge0"
ETC = Path("/etc/netns")
"""The folder in which `ip netns exec` looks for a namespace's replacements of files in /etc."""
GONE_SECONDS = 30.0


class HostsUnavailable(RuntimeError):
    """This machine cannot have hosts of its own."""


class Host:
    """One host. Created by `hosts`."""

    def __init__(self, namespace: str, name: str, number: int, disk: Path, switch: str) -> None:
        self.name = name
        self.address = f"{SUBNET}.{number}"
        self.disk = disk
        self._namespace, self._switch, self._port = namespace, switch, f"port{number}"

    def start(
        self,
        command: Sequence[str | Path],
        log: Path,
        environ: Mapping[str, str] | None = None,
        folder: Path | None = None,
    ) -> Started:
        """Start a process on this host, on its disk or in another folder, as the leader of a
        process group."""
        own = {"TMPDIR": str(self.disk / "tmp"), "HOSTNAME": self.name}
        at = time.time()
        with log.open("ab") as said:
            process = subprocess.Popen(
                self.command(command),
                cwd=folder or self.disk,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                start_new_session=True,
                env={**os.environ, **own, **(environ or {})},
            )
        return Started(process, at, log)

    def command(self, command: Sequence[str | Path]) -> list[str]:
        """The command line that runs a command on this host, under its name, as one process."""
        named = ["unshare", "--uts", "sh", "-c", f'hostname {self.name} && exec "$@"', "sh"]
        return ["ip", "netns", "exec", self._namespace, *named, *map(str, command)]

    def cut_off(self) -> None:
        """Disconnect the host: packets from it and to it are lost without notice."""
        _ip("-n", self._switch, "link", "set", self._port, "down")

    def reconnect(self) -> None:
        """Connect the host again."""
        _ip("-n", self._switch, "link", "set", self._port, "up")

    def processes(self) -> list[int]:
        """All processes that run on the host."""
        return _processes_of(self._namespace)

    def kill(self) -> None:
        """Kill all processes of the host at once, as if it was switched off."""
        _kill_all(self._namespace)

    def freeze(self) -> None:
        """Suspend all processes of the host."""
        for process in self.processes():
            _signal(process, signal.SIGSTOP)

    def thaw(self) -> None:
        """Resume all processes of the host."""
        for process in self.processes():
            _signal(process, signal.SIGCONT)

    def wipe(self) -> None:
        """Empty the host's disk, like that of a new machine."""
        shutil.rmtree(self.disk, ignore_errors=True)
        (self.disk / "tmp").mkdir(parents=True)


_networks = count()
"""Numbers the networks of this process: there may be several at a time."""


@contextmanager
def hosts(folder: Path, names: Sequence[str]) -> Iterator[dict[str, Host]]:
    """Hosts by name, with their disks in `folder`; all are removed when the block is left.

    Raises HostsUnavailable, with the reason, if this machine cannot have any.
    """
    for name in names:
        if not name.isalnum():
            raise ValueError(f"the host {name!r}: its name must be letters and digits")
    _check_machine()
    remove_stale()
    owner = f"{PREFIX}-{os.getpid()}-{_started(os.getpid())}.{next(_networks)}"
    switch = f"{owner}-{SWITCH}"
    try:
        _ip("netns", "add", switch)
        _ip("-n", switch, "link", "add", BRIDGE, "type", "bridge", "stp_state", "0")
        _ip("-n", switch, "link", "set", BRIDGE, "up")
        made = {}
        for number, name in enumerate(names, 1):
            host = Host(f"{owner}-{name}", name, number, folder / name, switch)
            (host.disk / "tmp").mkdir(parents=True, exist_ok=True)
            _plug_in(f"{owner}-{name}", host.address, switch, f"port{number}")
            made[name] = host
        for name in names:
            _write_names(ETC / f"{owner}-{name}", made)
        yield made
    finally:
        _remove(owner)


def remove_stale() -> None:
    """Remove the hosts of runs that have ended, with the processes that still run there."""
    for owner in {namespace.rsplit("-", 1)[0] for namespace in _namespaces()}:
        _, process, started = owner.split("-")
        if _started(int(process)) != int(started.partition(".")[0]):
            _remove(owner)


def _check_machine() -> None:
    advice = (
        "the cluster tests make hosts as network namespaces: run them as root on Linux, with "
        "iproute2 and util-linux (Debian: apt-get install iproute2 util-linux), and in a container "
        "only with the capabilities NET_ADMIN and SYS_ADMIN"
    )
    for tool in ("ip", "unshare", "hostname"):
        if shutil.which(tool) is None:
            raise HostsUnavailable(f"there is no command `{tool}`; {advice}")
    probe = f"{PREFIX}-{os.getpid()}-{_started(os.getpid())}-probe"
    try:
        _ip("netns", "add", probe)
        _ip("-n", probe, "link", "add", BRIDGE, "type", "bridge")
    except HostsUnavailable as error:
        raise HostsUnavailable(f"{error}; {advice}") from None
    finally:
        subprocess.run(["ip", "netns", "delete", probe], stderr=subprocess.DEVNULL)


def _plug_in(namespace: str, address: str, switch: str, port: str) -> None:
    _ip("netns", "add", namespace)
    _ip("-n", namespace, "link", "set", "lo", "up")
    peer = ("peer", "name", port, "netns", switch)
    _ip("-n", namespace, "link", "add", "eth0", "type", "veth", *peer)
    _ip("-n", namespace, "address", "add", f"{address}/24", "dev", "eth0")
    _ip("-n", namespace, "link", "set", "eth0", "up")
    _ip("-n", switch, "link", "set", port, "master", BRIDGE)
    _ip("-n", switch, "link", "set", port, "up")


def _write_names(folder: Path, made: Mapping[str, Host]) -> None:
    """Writes the hosts file of a namespace, which has no name server."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = ["127.0.0.1 localhost", *(f"{host.address} {name}" for name, host in made.items())]
    (folder / "hosts").write_text("\n".join(lines) + "\n")
    (folder / "resolv.conf").write_text("options attempts:1 timeout:1\n")


def _remove(owner: str) -> None:
    for namespace in _namespaces(owner):
        _kill_all(namespace)
        _ip("netns", "delete", namespace)
        shutil.rmtree(ETC / namespace, ignore_errors=True)


def _namespaces(owner: str = PREFIX) -> list[str]:
    folder = Path("/run/netns")
    if not folder.is_dir():
        return []
    return [entry.name for entry in folder.iterdir() if entry.name.startswith(f"{owner}-")]


def _processes_of(namespace: str) -> list[int]:
    return [int(number) for number in _ip("netns", "pids", namespace).split()]


def _kill_all(namespace: str) -> None:
    deadline = time.monotonic() + GONE_SECONDS
    while processes := [one for one in _processes_of(namespace) if not _is_zombie(one)]:
        for process in processes:
            _signal(process, signal.SIGKILL)
        if time.monotonic() > deadline:
            raise RuntimeError(f"processes of {namespace} do not end: {processes}")
        time.sleep(0.02)


def _signal(process: int, number: signal.Signals) -> None:
    try:
        os.kill(process, number)
    except ProcessLookupError:
        pass  # the process has ended meanwhile


def _is_zombie(process: int) -> bool:
    return _status(process)[:1] in ([], ["Z"])


def _started(process: int) -> int:
    """The start time of a process, in ticks since boot; 0 if there is no such process."""
    fields = _status(process)
    return int(fields[19]) if fields else 0


def _status(process: int) -> list[str]:
    """The fields of a process's status after its name; empty if there is no such process."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _ip(*arguments: str) -> str:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True)
    if done.returncode:
        raise HostsUnavailable(f"ip {' '.join(arguments)} failed: {done.stderr.strip()}")
    return done.stdout
