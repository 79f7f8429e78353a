"""Declaring actions, and where their addresses come from."""

from __future__ import annotations

from pathlib import Path

import pytest

import millstream as ms
from millstream.actions.address import addresses_of, parse_action_address
from millstream.config import load
from millstream.settings.settings import resolve

HOOK = "webhook:http://127.0.0.1:9000/hook"


def alerts(**more: str) -> ms.App:
    app = ms.App("alerts")
    app.source("in")
    app.action("notify", **more)
    app.map("in", publishes=("notify", "rest"), name="watch")(lambda event: None)
    app.output("rest")
    return app


def test_an_action_is_an_output_that_is_carried_out() -> None:
    """An action's stream can be tailed and read by a sink. An equal output without an action makes
    a different application."""
    workflow = alerts().checked()
    assert workflow.actions == ("notify",)
    assert workflow.outputs == ("notify", "rest")
    plain = ms.App("alerts")
    plain.source("in")
    plain.output("notify")
    plain._functions, more = alerts()._functions, alerts()
    plain.output("rest")
    more._functions = plain._functions
    assert more != plain
    plain.action("notify")
    assert more == plain


def test_flags_win_over_variables_and_these_over_code() -> None:
    """As for sources and sinks, name by name."""
    app = alerts(to="stderr")
    environ = {"MILLSTREAM_ACTION_NOTIFY": "line:env", "MILLSTREAM_ACTION_TRIES": "5"}
    assert resolve(app).addresses.actions == {"notify": "stderr"}
    found = resolve(app, environ=environ)
    assert (found.addresses.actions, found.delivery.action_tries) == ({"notify": "line:env"}, 5)
    flags = {"actions": {"notify": HOOK}}
    assert resolve(app, environ=environ, flags=flags).addresses.actions == {"notify": HOOK}


def test_a_file_may_say_it(tmp_path: Path) -> None:
    """`action = true` declares it, an address says where too; paths are counted from the file."""
    (tmp_path / "watching.py").write_text("def watch(event):\n    return None\n")
    text = """
[app]
name = "alerts"
[streams.in]
source = true
[streams.notify]
action = {}
[maps.watch]
function = "watching:watch"
subscribes = "in"
publishes = "notify"
[run]
action_patience = "for ever"
action_timeout = "2s"
"""
    path = tmp_path / "alerts.toml"
    path.write_text(text.format('"line:out.jsonl"'))
    target = load(str(path))
    found = resolve(target.app, target.toml)
    assert found.addresses.actions == {"notify": f"line:{tmp_path / 'out.jsonl'}"}
    assert (found.delivery.action_patience, found.delivery.action_timeout) == (None, 2_000_000)
    path.write_text(text.format("true"))
    target = load(str(path))
    assert target.app.checked().actions == ("notify",)
    assert resolve(target.app, target.toml).addresses.actions == {}
    path.write_text(text.format('"webhook:nowhere"'))
    with pytest.raises(ms.DefinitionError, match=r"alerts.toml:7: .*webhook:http://HOST"):
        load(str(path))


@pytest.mark.parametrize(
    ("address", "error"),
    [
        ("http://h/x", "write webhook:http://h/x"),
        ("webhok:http://h", "did you mean webhook"),
        ("webhook:ftp://h", "webhook:http://HOST/PATH"),
        ("webhook:http://", "webhook:http://HOST/PATH"),
        ("webhook:http://h:x/", "webhook:http://HOST/PATH"),
        ("webhook:", "names nothing"),
        ("line:", "names nothing"),
        ("stderr:x", "stderr takes no target"),
        ("json:out", "webhook:URL, line:FILE or stderr"),
        (7, "webhook:URL, line:FILE or stderr"),
    ],
)
def test_a_wrong_address_is_refused(address: object, error: str) -> None:
    """With what an address must be."""
    with pytest.raises(ms.DefinitionError, match=error):
        resolve(alerts(), flags={"actions": {"notify": address}})


def test_an_action_without_an_address_is_an_error_with_advice() -> None:
    """The error names the action and every way to give an address."""
    with pytest.raises(ms.DefinitionError, match=r"'notify' .*has no address.*--action notify="):
        addresses_of("alerts", ["notify"], {})


def test_two_actions_do_not_share_a_file(tmp_path: Path) -> None:
    """Each knows by the file's end what is there."""
    given = {"a": f"line:{tmp_path}/x", "b": f"line:{tmp_path}/../{tmp_path.name}/x"}
    with pytest.raises(ms.DefinitionError, match="'a' and 'b' must not write to one file"):
        addresses_of("alerts", given, given)


def test_only_an_action_has_an_address() -> None:
    """An output that is none is told apart from a name that is not there."""
    with pytest.raises(ms.DefinitionError, match=r"--action: 'rest' .*app.action\('rest'\)"):
        resolve(alerts(), flags={"actions": {"rest": "stderr"}})
    with pytest.raises(ms.DefinitionError, match="did you mean 'notify'"):
        resolve(alerts(), flags={"actions": {"notfy": "stderr"}})


def test_names_that_cannot_be() -> None:
    """The stream of an action's dead letters is Millstream's own, and a source is no action."""
    app = alerts()
    app.map("in", publishes="notify.failed", name="more")(lambda event: None)
    with pytest.raises(ms.DefinitionError, match="keeps that name for the dead letters"):
        app.checked()
    app = alerts()
    app.source("notify")
    with pytest.raises(ms.DefinitionError, match="'notify' must not be a source"):
        app.checked()
    app = alerts()
    app.action("nobody")
    with pytest.raises(ms.DefinitionError, match="'nobody': no function publishes it"):
        app.checked()


def test_a_secret_in_a_url_is_not_shown() -> None:
    """Only the host of a webhook is recorded and shown."""
    address = parse_action_address("webhook:https://user:pw@[::1]:8/t/s3cret?x=1", "here")
    assert address.shown == "webhook:https://[::1]:8"
