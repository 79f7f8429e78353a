"""The front door: help, errors, exit codes, what is imported."""

import os
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src"


def python(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "PYTHONPATH": str(SOURCE)}
    return subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, env=environ, cwd=cwd, timeout=60
    )


def test_importing_the_command_line_loads_no_spark(tmp_path):
    """`import millstream.cli.main` and every --help leave pyspark, pyarrow and rich alone."""
    code = (
        "import sys\n"
        "from click.testing import CliRunner\n"
        "from millstream.cli.main import main\n"
        "for words in ([], ['run'], ['slates'], ['slates', 'dump'], ['deadletters'], ['graph']):\n"
        "    assert CliRunner().invoke(main, [*words, '--help']).exit_code == 0, words\n"
        "print([m for m in ('pyspark', 'pyarrow', 'rich', 'lmdb') if m in sys.modules])\n"
    )
    done = python("-c", code, cwd=tmp_path)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


def test_help_shows_the_first_steps(tmp_path):
    """As a process of its own, too. (That it loads little is the test before.)"""
    done = python("-m", "millstream.cli.main", "--help", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "millstream new retail" in done.stdout


def test_every_command_teaches(millstream):
    """The help of each command has a description and an example to copy."""
    commands = [
        ("new",), ("run",), ("serve",), ("send",), ("tail",), ("check",), ("graph",),
        ("deadletters",), ("slates",), ("slates", "get"), ("slates", "scan"), ("slates", "watch"),
        ("slates", "dump"),
    ]  # fmt: skip
    for words in commands:
        helped = millstream(*words, "--help").output
        assert "Example" in helped, words
        assert f"  millstream {' '.join(words)}" in helped, words


def test_a_mistake_is_one_line_and_exit_2(millstream, here):
    """A definition error is `error: ...` on stderr, without a traceback."""
    (here / "bad.py").write_text("x = 1\nraise ValueError('no')\n")
    result = millstream("check", "bad.py")
    assert result.exit_code == 2
    assert result.stderr == "error: bad.py:2: ValueError: no\n"
    assert result.stdout == ""


def test_debug_shows_where(millstream, here):
    """--debug, before or after the command, shows the traceback too."""
    (here / "bad.py").write_text("raise ValueError('no')\n")
    for words in (("--debug", "check", "bad.py"), ("check", "bad.py", "--debug")):
        result = millstream(*words)
        assert result.exit_code == 2
        assert "Traceback" in result.stderr
        assert 'bad.py", line 1' in result.stderr


def test_unknown_commands_are_usage_errors(millstream):
    """A wrong command or flag exits 2."""
    assert millstream("chekc").exit_code == 2
    assert millstream("run").exit_code == 2
    assert millstream("run", "app.py", "--fast").exit_code == 2


def test_our_own_messages_are_one_line_and_exit_2(millstream, retail):
    """An error that Millstream finds in a command is one line, `error: ...`, without the usage."""
    for words, message in (
        (("new", "retail"), "retail exists already and is not empty; choose another name"),
        (
            ("graph", "retail/app.py", "--to", "no/x"),
            "cannot write no/x: No such file or directory",
        ),
        (
            ("slates", "dump", "count", "--to", "csv:cc"),
            "--to must be parquet:DIR or jsonl:FILE_OR_DIR; got 'csv:cc'",
        ),
        (
            ("run", "retail/app.py", "--source", "data/checkins"),
            "--source must be NAME=FORMAT:PATH, as in --source in=json:data; got 'data/checkins'",
        ),
    ):
        result = millstream(*words)
        assert (result.exit_code, result.stderr) == (2, f"error: {message}\n")


def test_an_app_without_functions_is_refused(millstream, here):
    """Sources alone are nothing to run."""
    (here / "empty.py").write_text("import millstream as ms\na = ms.App('a')\na.source('in')\n")
    result = millstream("check", "empty.py")
    assert result.exit_code == 2
    assert "app 'a' has no function: there is nothing to run" in result.stderr


SCRIPT = """
import millstream as ms
app = ms.App("scripted")
app.source("in")
app.update("in", name="count")(lambda event, slate: None)
"""


def test_a_script_ends_of_an_error_as_the_command_does(tmp_path):
    """`app.run()` in a script: one line and exit 2; the error can still be caught, and any other
    keeps its traceback."""
    script = tmp_path / "script.py"
    script.write_text(f"{SCRIPT}app.run(available_now=True)\n")
    done = python("script.py", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == (
        "error: source 'in' of app 'scripted' has no address, and nothing was sent to it; give it "
        "one with app.run(sources={'in': 'json:DIR'})\n"
    )
    script.write_text(
        f"{SCRIPT}try:\n    app.run(available_now=True)\n"
        "except ms.DefinitionError:\n    raise ValueError('mine')\n"
    )
    done = python("script.py", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.endswith("ValueError: mine\n")
    assert "Traceback" in done.stderr


RUN = "import sys; sys.argv = ['millstream', 'run', 'app.py']; from {} import {}; {}()"
INTERRUPTED = """
import os, signal, sys
class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "millstream.cli.commands.run":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupting())
"""


def test_ctrl_c_while_the_commands_load_ends_quietly(tmp_path):
    """Of the script `millstream`: no traceback of imports, and for a shell exit code 130."""
    project = tomllib.loads((SOURCE.parent / "pyproject.toml").read_text())["project"]
    module, function = project["scripts"]["millstream"].split(":")
    done = python("-c", INTERRUPTED + RUN.format(module, function, function), cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


def test_ctrl_c_while_an_application_is_loaded_ends_quietly(tmp_path):
    """The next step of `run`: nothing has begun, so the exit code is 130."""
    (tmp_path / "app.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    done = python("-c", RUN.format("millstream.cli.main", "main", "main"), cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
