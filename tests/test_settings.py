"""The settings of a deployment, and their precedence."""

from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest

import millstream as ms
from millstream.cli.store import named_store
from millstream.settings.setting_values import PARSERS
from millstream.settings.settings import Settings, resolve, served_settings, store_of

MIB = 1024 * 1024
ADDRESSES = {"sources": {"checkins": "json:in"}}


def an_app() -> ms.App:
    app = ms.App("retail")
    app.source("checkins")
    app.output("hot-topics")

    @app.map("checkins", publishes=["hot-topics", "inner"])
    def split(event):
        yield ms.emit("inner")

    @app.update("inner")
    def count(event, slate):
        slate["n"] = 1

    return app


def refused(**layers) -> str:
    with pytest.raises(ms.DefinitionError) as caught:
        resolve(an_app(), **layers)
    return str(caught.value)


def test_defaults():
    """With addresses alone, everything else has its default."""
    assert resolve(an_app(), flags=ADDRESSES) == Settings.of(
        app="retail",
        store=Path(".millstream/retail"),
        sources={"checkins": "json:in"},
        sinks={},
        shards=None,
        tasks=None,
        available_now=False,
        final=False,
        batch_bytes=32 * MIB,
        small_bytes=MIB,
        lane="auto",
        master="local[*]",
        memory="1g",
    )


def test_every_setting_is_in_one_part():
    """A setting that users may give is a field of one part, or of `Settings` itself, and has a
    value that `changed` replaces."""
    settings = Settings.of("retail", Path("kept"))
    parts = [part for part in fields(settings) if is_dataclass(getattr(settings, part.name))]
    names = [each.name for part in parts for each in fields(getattr(settings, part.name))]
    assert sorted([*names, "serve", "package"]) == sorted([*PARSERS, "place"])
    for name in names:
        changed = settings.changed(**{name: "given"})
        values = {name: value for part in parts for name, value in _values(changed, part.name)}
        assert {name for name, value in values.items() if value == "given"} == {name}
    with pytest.raises(TypeError):
        settings.changed(nothing=1)


def _values(settings: Settings, part: str) -> list[tuple[str, object]]:
    kept = getattr(settings, part)
    return [(each.name, getattr(kept, each.name)) for each in fields(kept)]


def test_flags_over_environment_over_toml_over_code():
    """Each layer wins over those below it, setting by setting and address by address."""
    app = an_app()
    app.settings = {"sources": {"checkins": "json:code"}, "shards": 1, "tasks": 1, "memory": "1g"}
    layers = {
        "code": {"shards": 2, "tasks": 2, "lane": "shuffled", "master": "spark://one:7077"},
        "toml": {"tasks": 3, "lane": "one-task", "master": "local[3]", "sinks": {"late": "json:t"}},
        "environ": {
            "MILLSTREAM_LANE": "auto",
            "MILLSTREAM_MASTER": "local[4]",
            "MILLSTREAM_SINK_HOT_TOPICS": "parquet:e",
            "MILLSTREAM_FINAL": "yes",
            "MILLSTREAM_TOKEN": "not ours",
            "SHARDS": "99",
        },
        "flags": {"master": "local[5]", "sources": {"checkins": "json:flag"}, "memory": None},
    }
    found = resolve(app, **layers)
    assert found.addresses.sources == {"checkins": "json:flag"}
    assert found.addresses.sinks == {"late": "json:t", "hot-topics": "parquet:e"}
    assert (found.storage.shards, found.batches.tasks, found.batches.lane) == (2, 3, "auto")
    assert (found.cluster.master, found.cluster.memory) == ("local[5]", "1g")
    assert found.batches.final


def test_final_means_available_now():
    """A run that lets everything through takes what is there and stops."""
    assert resolve(an_app(), flags={**ADDRESSES, "final": True}).batches.available_now


@pytest.mark.parametrize(
    ("text", "count"),
    [("32MiB", 32 * MIB), ("1.5kB", 1500), ("7", 7), (7, 7), ("2g", 2048 * MIB), ("3 KiB", 3072)],
)
def test_sizes(text, count):
    """A size is a number of bytes or text with a unit."""
    assert resolve(an_app(), flags={**ADDRESSES, "batch_bytes": text}).batches.batch_bytes == count


@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        ("shards", 0, "--shards must be a whole number from 1 to 1024; got 0"),
        ("shards", "1025", "--shards must be a whole number from 1 to 1024; got '1025'"),
        ("shards", True, "--shards must be a whole number from 1 to 1024; got True"),
        ("tasks", -1, "--tasks must be a whole number, 1 or more; got -1"),
        ("batch_bytes", "0", "--batch-bytes must be 1 byte or more; got '0'"),
        ("batch_bytes", "much", "--batch-bytes must be a number of bytes, or text such as '32MiB'"),
        ("lane", "fast", "--lane must be one of auto, one-task, shuffled; got 'fast'"),
        ("master", "localhost", "--master must be a Spark master: local"),
        ("master", "spark://one:7077/", "--master must be a Spark master: local"),
        ("memory", "1", "--memory must be an amount of memory such as 512m or 2g; got '1'"),
        ("available_now", "maybe", "--available-now must be true or false; got 'maybe'"),
        ("store", 3, "--store must be a path; got 3"),
        ("sources", {"checkins": "in"}, "--source, 'checkins': must be FORMAT:DIRECTORY; got 'in'"),
        (
            "sources",
            {"chekins": "json:in"},
            "--source: 'chekins' is not a source of app 'retail'; did you mean 'checkins'?",
        ),
        (
            "sinks",
            {"hot_topics": "json:o"},
            "'hot_topics' is not an output of app 'retail'; did you",
        ),
        (
            "sinks",
            {"hot-topics": "csv:out"},
            "--sink, 'hot-topics': a sink's format must be one of json, parquet, log, sqlite",
        ),
        (
            "sources",
            {"checkins": "sqlite:in.db"},
            "--source, 'checkins': a source's format must be one of json, csv, text, parquet, log",
        ),
        ("sinks", {"late": "sqlite:o.db"}, "than a table's columns hold; give it"),
        ("sinks", {"inner": "json:o"}, "declare it with app.output('inner')"),
        ("shard", 1, "unknown setting 'shard'; did you mean 'shards'?"),
    ],
)
def test_wrong_values(setting, value, message):
    """A wrong value is refused with the flag, the expected and the given value."""
    assert message in refused(flags={**ADDRESSES, setting: value})


def test_the_place_of_a_wrong_value_is_named():
    """The error names the variable, the file, the code or the flag."""
    assert refused(environ={"MILLSTREAM_SHARDS": "x"}).startswith("MILLSTREAM_SHARDS must be")
    assert refused(toml={"shards": "x"}).startswith("'shards' in the TOML file must be")
    assert refused(code={"shards": "x"}).startswith("app.run(shards=) must be")
    assert "MILLSTREAM_SOURCE_CHEKINS: 'CHEKINS' is not a source of app 'retail'; did you mean" in (
        refused(environ={"MILLSTREAM_SOURCE_CHEKINS": "json:x"})
    )


def test_a_source_without_an_address_reads_its_log(tmp_path):
    """A source that is given no address reads an event log in the store; a run that does not wait
    is refused, with the flag to give, unless something was sent there."""
    assert resolve(an_app(), flags={"store": tmp_path}).addresses.sources == {"checkins": "log"}
    now = {"store": tmp_path, "available_now": True}
    assert "--source checkins=json:DIR" in refused(flags=now)
    (tmp_path / "logs" / "checkins").mkdir(parents=True)
    assert resolve(an_app(), flags=now).addresses.sources == {"checkins": "log"}


def test_the_store_must_be_a_directory(tmp_path):
    """A file in the store's place is refused before anything runs."""
    (tmp_path / "file").write_text("")
    assert "must be a directory" in refused(flags={**ADDRESSES, "store": tmp_path / "file"})


@pytest.mark.parametrize(
    "address", ["s3:/bucket/app", "S3://bucket/app", "gcs://bucket/app", "hdfs://host:9000/app"]
)
def test_an_address_that_is_no_place_is_no_folder(address):
    """A folder of that name would be lost with the machine, which the user wanted to avoid."""
    expected = f"--store: '{address}' is no place; it must be s3://BUCKET/PREFIX"
    assert expected in refused(flags={**ADDRESSES, "store": address})
    with pytest.raises(ms.StoreError, match="is no place"):
        named_store(address, None)


def test_store_of_needs_no_addresses():
    """Reading commands find the store by the same rules, without the rest."""
    app = an_app()
    assert store_of(app) == Path(".millstream/retail")
    app.settings["store"] = "code"
    assert store_of(app) == Path("code")
    assert store_of(app, {"store": Path("toml")}) == Path("toml")
    assert store_of(app, {"store": "toml"}, {"MILLSTREAM_STORE": "env"}) == Path("env")


def test_the_advice_fits_where_the_settings_come_from():
    """A command is told of --source, a script of the argument of `app.run`."""
    assert "with --source checkins=json:DIR" in refused(flags={"final": True})
    assert "with app.run(sources={'checkins': 'json:DIR'})" in refused(code={"final": True})


def test_how_long_logs_are_kept():
    """Age and size are set as text with a unit, or are for ever; what is neither is refused."""
    found = resolve(an_app(), toml={"retain_age": "36h", "retain_bytes": "2GiB"})
    assert (found.logs.retain_age, found.logs.retain_bytes) == (36 * 3_600_000_000, 2 << 30)
    for_ever = resolve(an_app(), environ={"MILLSTREAM_RETAIN_AGE": "for ever"})
    assert for_ever.logs.retain_age is None
    assert "must be a duration" in refused(toml={"retain_age": "long"})


def test_a_server_without_its_application():
    """Where only a store is at hand, a server's settings are flags over variables."""
    environ = {"MILLSTREAM_PORT": "9000", "MILLSTREAM_HOSTS": "a.example,b.example"}
    found = served_settings(Path("kept"), environ, {"port": "9001", "token_file": None})
    assert (found.storage.store, found.server.port, found.server.hosts) == (
        Path("kept"),
        9001,
        ("a.example", "b.example"),
    )
    with pytest.raises(
        ms.DefinitionError, match="--port must be a whole number from 0 to 65535; got '-1'"
    ):
        served_settings(Path("kept"), {}, {"port": "-1"})


def test_a_deployment_sets_how_large_slates_may_be():
    """The application's limits hold unless a setting overrides them. The graph does not change."""
    app = an_app()
    assert resolve(app, flags=ADDRESSES).updates.applied(app.checked()) == app.checked()
    given = resolve(app, flags=ADDRESSES, environ={"MILLSTREAM_SLATE_LIMIT": "2MiB"})
    applied = given.updates.applied(app.checked())
    assert (applied.slate_warn, applied.slate_limit) == (MIB, 2 * MIB)
    assert applied.layers == app.checked().layers
    assert applied != app.checked()
    assert "--slate-limit must be 1 byte or more; got '0'" in refused(flags={"slate_limit": "0"})


def test_patience_with_a_sink_is_a_duration():
    """Ten minutes unless told; none is fine."""
    assert resolve(an_app(), flags=ADDRESSES).delivery.sink_patience == 600_000_000
    assert resolve(an_app(), flags={**ADDRESSES, "sink_patience": "0s"}).delivery.sink_patience == 0
    assert "--sink-patience must be a duration" in refused(flags={"sink_patience": "long"})


def test_batches_are_flushed_one_by_one_or_at_intervals() -> None:
    """The default, and "batch" over an interval that was set elsewhere, is every batch; an interval
    has a length."""
    assert resolve(an_app(), flags=ADDRESSES).storage.flush is None
    assert resolve(an_app(), flags={**ADDRESSES, "flush": "10s"}).storage.flush == 10_000_000
    both = resolve(an_app(), toml={"flush": "10s"}, flags={**ADDRESSES, "flush": "batch"})
    assert both.storage.flush is None
    environ = {"MILLSTREAM_FLUSH": "500ms"}
    assert resolve(an_app(), environ=environ, flags=ADDRESSES).storage.flush == 500_000
    for wrong in ("0s", "never", "10"):
        assert "--flush must be 'batch' or an interval" in refused(flags={"flush": wrong})


@pytest.mark.parametrize(
    ("said", "address", "message"),
    [
        (
            {"pattern": "(?P<a>.)"},
            "json:in",
            "pattern must be left out, or be of text files; got it with",
        ),
        ({"starts": "a"}, "csv:in", "starts must be left out"),
        (
            {"encoding": "latin-1"},
            "parquet:in",
            "encoding must be left out",
        ),
        ({"delimiter": ";"}, "text:in", "delimiter must be left out"),
        ({"jump": "1h", "ts": "t"}, "log", "jump must be left out, or be of files"),
    ],
)
def test_what_a_source_says_of_another_format(said, address, message):
    """An option of another format is refused, not ignored. Sent events may be text."""
    app = ms.App("reading")
    app.source("lines", **said)
    app.map("lines", name="look")(lambda event: None)
    with pytest.raises(ms.DefinitionError, match=f"^source 'lines': {message}"):
        resolve(app, flags={"sources": {"lines": address}})
    if "jump" not in said:
        resolve(app)


def test_the_cache_of_a_host_is_its_own() -> None:
    """The driver's MILLSTREAM_CACHE is where it keeps its own files, and not the executors'."""
    app = ms.App("a")
    app.source("s", key="k")
    environ = {"MILLSTREAM_CACHE": "/here", "MILLSTREAM_STORE": "shared:/place"}
    assert resolve(app, environ=environ).storage.cache == ""
    assert resolve(app, environ=environ, flags={"cache": "/there"}).storage.cache == "/there"
