"""Settings of a run on a cluster: valid combinations, and those that are refused before Spark
loads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import millstream as ms
from millstream.app_file.app_file import read_app
from millstream.errors import DefinitionError
from millstream.settings.cluster_options import OWN, SECRET, master_kind
from millstream.settings.settings import Settings, resolve
from millstream.spark.cluster_conf import ClusterAccess, cluster_conf

SHARED = {"store": "s3://bucket/app"}


def resolved(environ: dict[str, str] | None = None, **flags: Any) -> Settings:
    app = ms.App("shop")
    app.source("clicks", key="user", ts="ts")
    app.update("clicks", name="count")(lambda event, slate: None)
    return resolve(app, environ=environ, flags={"sources": {"clicks": "json:in"}, **flags})


@pytest.mark.parametrize(
    ("master", "kind"),
    [
        ("local[*]", "local"),
        ("spark://one:7077", "standalone"),
        ("spark://one:7077,two:7077", "standalone"),
        ("yarn", "yarn"),
        ("k8s://https://10.0.0.1:6443", "kubernetes"),
        ("k8s://10.0.0.1:6443", "kubernetes"),
        ("spark://one", None),
        ("spark://one:7077;rm", None),
        ("mesos://one:5050", None),
        ("yarn-client", None),
    ],
)
def test_masters(master: str, kind: str | None) -> None:
    """A master is one of four kinds; anything else is none."""
    assert master_kind(master) == kind


@pytest.mark.parametrize("master", ["yarn", "k8s://https://10.0.0.1:6443"])
def test_a_cluster_of_other_machines_needs_a_shared_store(master: str) -> None:
    """A folder of the driver's machine cannot be seen by executors elsewhere."""
    with pytest.raises(DefinitionError, match=r"store must be a shared one.*got the folder"):
        resolved(master=master, listen="10.0.0.5")


def test_a_standalone_cluster_on_this_machine_may_have_a_folder() -> None:
    """As before there was a shared store: its workers are found to be here when they come."""
    assert not resolved(master="spark://127.0.0.1:7077").storage.place
    with pytest.raises(DefinitionError, match=r"store must be a shared one"):
        resolved(master="spark://127.0.0.1:7077", listen="10.0.0.5")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"master": "yarn"}, r"listen must be an address of this machine.*--listen 10.0.0.5"),
        (
            {"master": "k8s://10.0.0.1:6443", "listen": "10.0.0.5"},
            r"needs the image of the executors.*spark.kubernetes.container.image",
        ),
        (
            {"master": "spark://one:7077", "listen": "10.0.0.5"},
            r"--secret-file FILE, or MILLSTREAM_SPARK_SECRET; or say --no-encrypt",
        ),
        ({"listen": "10.0.0.5"}, r"listen is for a cluster.*the master is local\[\*\]"),
        ({"python": "python3.11"}, r"python is for a cluster"),
        (
            {"spark": {"spark.speculation": "true"}},
            r"--conf: spark.speculation must be left to Mill",
        ),
        (
            {"spark": {"driver.host": "x"}},
            r"spark.driver.host must be left to Millstream: it is --l",
        ),
        ({"spark": {"executor": [1]}}, r"spark|executor must be text, a number or true or false"),
    ],
)
def test_what_does_not_go_together(flags: dict[str, Any], message: str) -> None:
    """Options that contradict each other are refused, with advice."""
    with pytest.raises(DefinitionError, match=message):
        resolved(**SHARED, **flags)


def test_the_secret_comes_from_a_file_of_its_owner_alone(tmp_path: Path) -> None:
    """Or from the environment; a file that others can read, or an empty one, is refused."""
    cluster = {**SHARED, "master": "spark://one:7077", "listen": "10.0.0.5"}
    file = tmp_path / "secret"
    file.write_text("hush\n")
    file.chmod(0o644)
    with pytest.raises(DefinitionError, match=r"chmod 600"):
        resolved(**cluster, secret_file=file)
    file.chmod(0o600)
    given = resolved(**cluster, secret_file=file)
    assert ClusterAccess.of(given.cluster, {}).secret == "hush"
    assert "hush" not in repr(ClusterAccess.of(given.cluster, {}))
    environ = {SECRET: "word"}
    assert ClusterAccess.of(resolved(environ, **cluster).cluster, environ).secret == "word"
    assert ClusterAccess.of(resolved(**cluster, encrypt=False).cluster, {}).secret == ""
    file.write_text("")
    with pytest.raises(DefinitionError, match="it is empty"):
        resolved(**cluster, secret_file=file)


def test_settings_of_spark_in_the_file_and_by_flag(tmp_path: Path) -> None:
    """`[spark]` may be nested, `spark.` may be left out, and a flag wins."""
    (tmp_path / "app.toml").write_text(
        '[app]\nname = "shop"\n[streams.clicks]\nsource = true\nkey = "user"\nts = "ts"\n'
        '[updates.count]\nsubscribes = "clicks"\nfunction = "math:hypot"\n'
        '[spark]\nexecutor.cores = 2\n"spark.yarn.queue" = "slow"\n'
    )
    app, toml = read_app(tmp_path / "app.toml")
    given = resolve(app, toml, flags={"spark": {"yarn.queue": "fast"}})
    assert given.cluster.spark == {"spark.executor.cores": "2", "spark.yarn.queue": "fast"}
    (tmp_path / "app.toml").write_text((tmp_path / "app.toml").read_text() + "speculation = true\n")
    with pytest.raises(DefinitionError, match=r"app.toml:\d+: .*spark.speculation must be left"):
        read_app(tmp_path / "app.toml")


def test_whoever_listens_is_encrypted_unless_told_not_to() -> None:
    """On an address that others reach, Spark authenticates and encrypts; on loopback not."""
    inside = cluster_conf(ClusterAccess(), "1g", "", "path")
    assert "spark.authenticate" not in inside
    assert inside["spark.executorEnv.PYTHONPATH"] == "path"
    outside = cluster_conf(ClusterAccess(listen="10.0.0.5", secret="hush"), "1g", "", "path")
    for name in (
        "spark.authenticate",
        "spark.network.crypto.enabled",
        "spark.io.encryption.enabled",
    ):
        assert outside[name] == "true"
    assert outside["spark.driver.host"] == "10.0.0.5"
    assert "spark.executorEnv.PYTHONPATH" not in outside
    bare = cluster_conf(ClusterAccess(listen="10.0.0.5", encrypt=False), "1g", "", "path")
    assert "spark.authenticate" not in bare


def test_a_silent_host_is_given_up_before_a_silent_driver() -> None:
    """Executors that miss some heartbeats are not lost yet, and requests to a busy driver may take
    longer than an executor may be silent."""
    conf = cluster_conf(ClusterAccess(), "1g", "", "path")
    silence = _seconds(conf["spark.network.timeout"])
    assert 4 * _seconds(conf["spark.executor.heartbeatInterval"]) <= silence <= 15
    for name in (
        "spark.rpc.askTimeout",
        "spark.rpc.lookupTimeout",
        "spark.rpc.io.connectionTimeout",
    ):
        assert _seconds(conf[name]) > silence
    connecting = _seconds(conf["spark.shuffle.io.connectionCreationTimeout"])
    retries = int(conf["spark.shuffle.io.maxRetries"])
    assert _seconds(conf["spark.shuffle.io.connectionTimeout"]) + retries * connecting <= silence


def _seconds(text: str) -> int:
    return int(text.removesuffix("s"))


def test_what_millstream_sets_for_a_cluster_is_not_for_users_where_it_matters() -> None:
    """Every setting that is refused is one that Millstream sets, or has a flag for."""
    access = ClusterAccess(listen="10.0.0.5", secret="hush", runtime=Path("r.zip"))
    ours = set(cluster_conf(access, "1g", "", ""))
    by_flag = {name for name, reason in OWN.items() if "--" in reason or "it is " in reason}
    workers = {name for name in OWN if name.startswith("spark.python.")}
    assert set(OWN) <= ours | by_flag | workers | {"spark.speculation", "spark.submit.deployMode"}
