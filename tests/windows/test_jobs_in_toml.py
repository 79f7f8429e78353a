"""Jobs in a TOML file: the same as in Python, and mistakes with their line."""

from __future__ import annotations

from pathlib import Path

import pytest

import millstream as ms
from millstream.app_file.app_file import read_app
from millstream.windows import Area, Job

FUNCTIONS = """
def words(record):
    for word in record["line"].split():
        yield word, 1
"""
FILE = """
[app]
name = "logs"
order = "event-time"

[streams.web1]
source = true

[streams.web2]
source = true

[jobs.counts]
map = "job_words:words"
combine = "sum"
range = "10s"
slide = "5s"
nodes = ["web1", "web2"]
fidelity = { area = 0.5 }
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "job_words.py").write_text(FUNCTIONS)
    return tmp_path


def written(folder: Path, text: str) -> Path:
    path = folder / "app.toml"
    path.write_text(text)
    return path


def test_a_job_in_a_file_is_the_job_in_python(folder: Path) -> None:
    """Both make the same application."""
    app, _ = read_app(written(folder, FILE))
    from job_words import words  # type: ignore[import-not-found]  # made by the fixture

    other = ms.App("logs", order="event-time")
    other.source("web1")
    other.source("web2")
    job = Job(
        map=words,
        combine=ms.algebra.sum(),
        range="10s",
        slide="5s",
        fidelity=Area(0.5),
    )
    other.add(job, name="counts", nodes=["web1", "web2"])
    assert app == other


def test_a_job_with_agents_in_a_file(folder: Path) -> None:
    """The logs have a table of their own; every option of a job can be said."""
    agents = FILE[: FILE.index("[streams.web1]")] + FILE[FILE.index("[jobs.counts]") :]
    text = agents.replace("{ area = 0.5 }", "{ error = 0.05, confidence = 0.9 }")
    text += """shed = "drawn"
seed = 7
most = [-1, 1]
corrections = 2
latency = "5s"

[jobs.counts.logs]
pattern = "(?P<time>\\\\S+) (?P<line>.*)"
ts = "time"
"""
    app, _ = read_app(written(folder, text))
    from job_words import words

    other = ms.App("logs", order="event-time")
    job = Job(
        map=words,
        combine=ms.algebra.sum(),
        range="10s",
        slide="5s",
        fidelity=ms.windows.Error(0.05, confidence=0.9),
        shed="drawn",
        seed=7,
        most=(-1, 1),
        corrections=2,
        latency="5s",
    )
    logs = ms.windows.Logs(pattern=r"(?P<time>\S+) (?P<line>.*)", ts="time")
    other.add(job, name="counts", nodes=["web1", "web2"], logs=logs)
    assert app == other
    assert app.parts == other.parts


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('slide = "5s"', 'slide = "20s"', "app.toml:16: job: slide must be no longer"),
        ('slide = "5s"', 'slied = "5s"', "app.toml:16: unknown key 'slied'.*'slide'"),
        ('"web2"]', '"web3"]', "app.toml:17: .*unknown stream 'web3'"),
        ("{ area = 0.5 }", "{ volume = 1 }", "app.toml:18: .*one of area, spatial"),
        ("{ area = 0.5 }", "{ spatial = 1, drawn = true }", "app.toml:18: .*one of area, spatial"),
        ("{ area = 0.5 }", "{ area = 0.5 }\n[jobs.counts.logs]\nlts = 'x'", "app.toml:20: .*'ts'"),
        ("{ area = 0.5 }", "{ area = 0.5 }\n[jobs.counts.logs]\nunit = 'x'", "app.toml:20: .*unit"),
        ("{ area = 0.5 }", "{ area = 9 }", "app.toml:18: .* for area, as in 0.5; got 9$"),
        ("{ area = 0.5 }", "{ error = 0 }", "app.toml:18: .* for error, as in 0.5; got 0$"),
        (
            "{ area = 0.5 }",
            "{ error = 0.1, confidence = 3.0 }",
            "app.toml:18: .*confidence of .*; got 3.0$",
        ),
        ('combine = "sum"', 'combine = "summ"', "app.toml:14: .*'sum'"),
        ('map = "job_words:words"', 'map = "job_words:word"', "app.toml:13: .*'words'"),
    ],
)
def test_a_mistake_is_told_with_its_line(folder: Path, old: str, new: str, said: str) -> None:
    """The key's line, what must be, and the nearest word."""
    with pytest.raises(ms.DefinitionError, match=said):
        read_app(written(folder, FILE.replace(old, new)))
