"""The commands of a page of the documentation, run as they stand there.

shell = PageShell("docs/tour.md", tmp_path)
shell.run("millstream new retail")             # what it prints; it must be on the page, and succeed
with shell.going("millstream run app.py") as run:   # one that goes on
    run.wait_for("live page")

What is not as written: `millstream` runs batches in this process's Python instead of on Spark (the
runner of `millstream dev`; how they run on Spark is for other tests), servers listen where there is
room, and names of hosts and folders are swapped for ones that are here.
"""

from __future__ import annotations

import multiprocessing
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import chdir, contextmanager, nullcontext
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import ModuleType
from typing import Any

from click.testing import CliRunner
from test_docs import examples

from millstream.cli.main import main
from millstream.driver import in_process
from millstream.driver.report import RunSummary

ROOT = Path(__file__).resolve().parent.parent.parent
PORT = "8470"
"""Where the pages' servers are."""
PATIENCE = 60.0
_FIRST = re.compile(
    r"    (?:\$ )?((?:millstream|curl|python|kill|printf|mv|cd|\(umask|MILLSTREAM_\w+=)(?![\w:]).*"
    r"|MILLSTREAM_\w+=.*)"
)
_ONLY_WORDS = re.compile(r"millstream [^|<>*$;&`]*")
_forks = multiprocessing.get_context("forkserver")
_forks.set_forkserver_preload(
    [
        "millstream.server.__main__",
        "millstream.server.process",
        "page_shell",
        "millstream.cli.commands.agent",
    ]
)


def commands_of(page: str) -> list[str]:
    """The commands in the indented blocks of a page, in order, each with its further lines."""
    lines = iter((ROOT / page).read_text(encoding="utf-8").splitlines())
    found, fenced = [], False
    for line in lines:
        if line.startswith("```"):
            fenced = not fenced
        match = None if fenced else _FIRST.fullmatch(line)
        if match is None:
            continue
        command = match[1]
        while command.endswith("\\"):
            command += "\n" + next(lines)[4:]
        found.append(re.sub(r"\s+# .*", "", command))
    return found


def free_port() -> str:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return str(taken.getsockname()[1])


@dataclass
class Going:
    """A command that goes on."""

    process: BaseProcess
    out: Path

    def said(self) -> str:
        return self.out.read_text()

    def wait_for(self, text: str) -> str:
        """Waits until the output contains the text, and returns it."""
        deadline = time.monotonic() + PATIENCE
        while text not in self.said():
            assert self.process.is_alive() or text in self.said(), self.said()
            assert time.monotonic() < deadline, f"no {text!r} in: {self.said()}"
            time.sleep(0.02)
        return self.said()

    def interrupt(self) -> int | None:
        """Ctrl-C; its exit code."""
        assert self.process.pid is not None
        os.kill(self.process.pid, signal.SIGINT)
        return self.ends()

    def ends(self) -> int | None:
        """Its exit code, once it has ended."""
        self.process.join(PATIENCE)
        return self.process.exitcode


@dataclass
class PageShell:
    """A terminal, in a folder, for whoever follows a page."""

    page: str
    here: Path
    swaps: dict[str, str] = field(default_factory=dict)
    """The texts on the page, and their replacements."""

    def __post_init__(self) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.swaps = {PORT: self.port, **self.swaps}
        self.env: dict[str, str] = {"MILLSTREAM_PORT": self.port}
        self._written = set(commands_of(self.page))
        self._going = 0

    def paste(self, *names: str) -> None:
        """Write marked examples of the page into the folder."""
        blocks = examples(self.page)
        for name in names:
            (self.here / name).parent.mkdir(parents=True, exist_ok=True)
            (self.here / name).write_text(self.swapped(blocks[name]))

    def swapped(self, text: str) -> str:
        for written, used in self.swaps.items():
            text = text.replace(written, used)
        return text

    def run(self, command: str, *, code: int = 0) -> str:
        """Returns the output of a command of the page. It must end with this exit code."""
        return self.do(self._taken(command), code=code)

    def do(self, command: str, *, code: int = 0) -> str:
        """Runs any command in the same way. If it is to fail, the output includes its errors."""
        if command.startswith(("millstream run", "millstream pack")):  # which load code
            with self._started(command, {}) as run:
                assert run.ends() == code, run.said()
                return run.said()
        if _ONLY_WORDS.fullmatch(command):
            found, output, printed = self._asked(command)
            assert found == code, output
            return output if code else printed
        done = subprocess.run(
            ["sh", "-e", "-c", command],
            cwd=self.here,
            env=self._environment(),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        assert done.returncode == code, done.stdout + done.stderr
        assert "Traceback" not in done.stderr, done.stderr
        return done.stdout + (done.stderr if code else "")

    @contextmanager
    def going(self, command: str, env: Mapping[str, str] | None = None) -> Iterator[Going]:
        """A command of the page that goes on; ended by force if the test does not end it."""
        with self._started(self._taken(command), env or {}) as going:
            yield going

    def until(self, command: str, wanted: str) -> str:
        """Repeats a command until its output has the text, and returns it."""
        deadline = time.monotonic() + PATIENCE
        while wanted not in (found := self._asked(command)[1]):
            assert time.monotonic() < deadline, found
            time.sleep(0.02)
        return found

    def _taken(self, command: str) -> str:
        assert command in self._written, f"{self.page} does not have: {command}"
        return self.swapped(command)

    def _asked(self, command: str) -> tuple[int, str, str]:
        """Run a command in this process: its exit code, all that it says, what it prints.

        An interpreter takes longer to start than such a command to run.
        """
        env = {**dict.fromkeys(set(os.environ) - set(self._environment())), **self.env}
        with chdir(self.here):
            result = CliRunner().invoke(main, _words(command)[1:], env=env)
        return result.exit_code, result.output, result.stdout

    @contextmanager
    def _started(self, command: str, env: Mapping[str, str]) -> Iterator[Going]:
        """Run a command in a process that is forked from one that has all of its imports."""
        self._going += 1
        out = self.here / f".said-{self._going}"
        out.touch()
        words = _words(command)
        at = words.index("millstream")
        given = dict(word.split("=", 1) for word in words[:at])
        everything = {**self._environment(), **env, **given}
        arguments = (words[at + 1 :], self.here, everything, out)
        process = _forks.Process(target=_command, args=arguments, daemon=True)
        process.start()
        try:
            yield Going(process, out)
        finally:
            if process.is_alive() and process.pid is not None:
                os.killpg(process.pid, signal.SIGKILL)
            process.join()

    def _environment(self) -> dict[str, str]:
        own = ("MILLSTREAM_", "PYTHONPATH")
        env = {name: value for name, value in os.environ.items() if not name.startswith(own)}
        env["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), env["PATH"]])
        return {**env, **self.env}


def _words(command: str) -> list[str]:
    return shlex.split(command.replace("\\\n", " "), comments=True)


def _run_in_process(*given: Any, lease: None = None, **named: Any) -> RunSummary:
    return in_process.run(*given, **named)


def _command(words: list[str], here: Path, env: dict[str, str], out: Path) -> None:
    """`millstream`, with its words, as a process of its own."""
    os.setsid()
    os.chdir(here)
    os.environ.clear()
    os.environ.update(env)
    said = os.open(out, os.O_WRONLY | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(said, stream)
    sys.stdout = os.fdopen(1, "w", buffering=1, closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)
    runner, leases = ModuleType("millstream.spark.runner"), ModuleType("leases")
    runner.run = _run_in_process  # type: ignore[attr-defined]
    leases.early_lease = lambda *_: nullcontext()  # type: ignore[attr-defined]
    sys.modules["millstream.spark.runner"] = runner
    sys.modules["millstream.spark.context_lease"] = leases
    main(words, prog_name="millstream")
