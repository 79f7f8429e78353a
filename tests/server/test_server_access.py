"""Tokens with rights, the access log, trusted proxies, and what is warned of."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import httpx
import msgspec
import pytest
from abuse import opened
from checkins import checkins_store
from click.testing import CliRunner
from served import served, until

from millstream.cli.main import main
from millstream.errors import DefinitionError
from millstream.server.access.access_log import Access
from millstream.server.access.client_address import TrustedProxies, networks_in
from millstream.server.access.grants import Grant, Need, read_tokens
from millstream.server.app import all_routes
from millstream.server.http.connection_room import Standing, to_close
from millstream.server.open_store import OpenStore
from millstream.server.options import ServerOptions, check, warnings
from millstream.server.service import Service
from millstream.stores.home import Home

CLIENT = httpx.Client(verify=False)


def tokens(*words: str) -> str:
    """Returns the output of `millstream tokens`. Its last word is the token, if the command makes
    one."""
    result = CliRunner().invoke(main, ["tokens", *map(str, words)])
    assert result.exit_code == 0, result.output
    return result.stdout.strip()


class Keys:
    """A file of tokens, and the tokens themselves."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.all = tokens("add", file, "ops", "--all")
        self.read = tokens("add", file, "page", "--read")
        self.send = tokens("add", file, "shop", "--send")
        self.slates = tokens("add", file, "counts", "--read", "--update", "count")
        self.stream = tokens("add", file, "clicks", "--read", "--send", "--stream", "clicks")
        self.agent = tokens("add", file, "web1", "--agent")


@pytest.fixture(scope="module")
def keys(tmp_path_factory) -> Keys:
    return Keys(tmp_path_factory.mktemp("tokens") / "tokens.toml")


@pytest.fixture(scope="module")
def guarded(keys, tmp_path_factory) -> Iterator[str]:
    made = checkins_store(tmp_path_factory.mktemp("store") / "store")
    made.commit({"count": {"Walmart": {"count": 1}}, "visitors": {"Walmart": {"ann": 1}}})
    with served(made.path, tokens=keys.file) as url:
        yield url


def ask(url: str, token: str, method: str, path: str) -> int:
    body = {"content": b"1"} if method == "POST" else {}
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    return CLIENT.request(method, url + path, headers=headers, **body).status_code


@pytest.mark.parametrize(
    ("name", "allowed", "refused"),
    [
        ("all", ["GET /slates/count/Walmart", "POST /streams/clicks", "GET /status"], []),
        (
            "read",
            ["GET /slates/count/Walmart", "GET /status", "GET /", "GET /streams/clicks/records"],
            ["POST /streams/clicks", "PUT /feeds/a/follows/b", "POST /agents/web1"],
        ),
        (
            "send",
            ["POST /streams/clicks", "GET /healthz", "GET /openapi.json"],
            ["GET /slates/count/Walmart", "GET /status", "GET /", "GET /streams/clicks/tail"],
        ),
        (
            "slates",
            ["GET /slates/count/Walmart", "GET /slates/count", "GET /slates/count/dump"],
            [
                "GET /slates/visitors/Walmart",
                "GET /slates",
                "GET /slates/nothing/x",
                "GET /status",
                "GET /metrics",
                "GET /streams/clicks/records",
                "POST /streams/clicks",
            ],
        ),
        (
            "stream",
            ["POST /streams/clicks", "GET /streams/clicks/records"],
            ["POST /streams/checkins", "GET /streams/deadletters/records", "GET /slates/count/x"],
        ),
        ("agent", ["GET /healthz"], ["GET /agents", "POST /streams/clicks", "GET /slates"]),
    ],
)
def test_a_token_allows_what_it_says(guarded, keys, name, allowed, refused):
    """And nothing else, whether it exists or not: that is not told."""
    token = getattr(keys, name)
    for line in allowed:
        assert ask(guarded, token, *line.split()) == 200, line
    for line in refused:
        assert ask(guarded, token, *line.split()) == 403, line


def test_every_route_needs_a_right(tmp_path):
    """A token without any right has the two that any has; one that sends cannot read."""
    made = checkins_store(tmp_path / "store")
    store = OpenStore(made.path)
    routes = all_routes(Service(ServerOptions(made.path), store, ""))
    nothing, sender = Grant("no", frozenset()), Grant("s", frozenset({"send"}))
    open_to_all = {route.path for route in routes if nothing.permits(route.need({}))}
    assert open_to_all == {"/healthz", "/openapi.json"}
    sent = {route.method for route in routes if sender.permits(route.need({}))} - {"GET"}
    assert sent == {"POST", "PUT", "DELETE"}
    store.close()


def test_names_are_of_their_kind():
    """An update's name does not open the stream of that name."""
    grant = Grant("x", frozenset({"read"}), frozenset({("update", "count")}))
    assert grant.permits(Need("read", "update", "count"))
    assert not grant.permits(Need("read", "stream", "count"))
    assert not grant.permits(Need("read"))


def test_no_token_is_in_the_file(keys):
    """The file has hashes and each token's grants. Only its owner can read it."""
    text = keys.file.read_text()
    for token in vars(keys).values():
        assert str(token) not in text
    assert stat.S_IMODE(keys.file.stat().st_mode) == 0o600
    listed = tokens("list", keys.file)
    assert "counts: read, only of update count" in listed
    assert read_tokens(keys.file)["shop"].may == ["send"]


def test_tokens_are_replaced_without_a_restart(tmp_path):
    """A rotated token is right beside the old one until that is retired; a removed one is not; a
    file that is broken changes nothing."""
    file = tmp_path / "tokens.toml"
    old = tokens("add", file, "shop", "--send")
    gone = tokens("add", file, "other", "--send")
    with served(checkins_store(tmp_path / "store").path, tokens=file) as url:

        def status(token: str) -> int:
            return ask(url, token, "POST", "/streams/clicks")

        assert (status(old), status(gone)) == (200, 200)
        new = tokens("rotate", file, "shop").split()[0]
        until(lambda: status(new) == 200)
        assert status(old) == 200
        tokens("retire", file, "shop")
        tokens("remove", file, "other")
        until(lambda: {status(old), status(gone)} <= {401, 429})
        assert status(new) == 200
        good = file.read_text()
        file.write_text("[broken")
        os.utime(file, (1, 1))
        assert status(new) == 200
        file.write_text(good.replace('"send"', '"read"'))
        until(lambda: status(new) == 403)


def test_the_one_token_is_replaced_too(tmp_path):
    """That of --token-file."""
    file = tmp_path / "token"
    file.write_text("the-first-of-tokens\n")
    store = checkins_store(tmp_path / "store").path
    with served(store, token="the-first-of-tokens", token_file=file) as url:
        assert ask(url, "the-first-of-tokens", "GET", "/status") == 200
        file.write_text("the-second-of-tokens\n")
        until(lambda: ask(url, "the-second-of-tokens", "GET", "/status") == 200)
        assert ask(url, "the-first-of-tokens", "GET", "/status") in (401, 429)


def test_a_token_expires(tmp_path):
    """From its time on it is none."""
    file = tmp_path / "tokens.toml"
    token = tokens("add", file, "guest", "--read", "--expires", "90d")
    with served(checkins_store(tmp_path / "store").path, tokens=file) as url:
        assert ask(url, token, "GET", "/status") == 200
        lines = file.read_text().splitlines()
        file.write_text("\n".join(["expires = 2020-01-01" if "exp" in x else x for x in lines]))
        until(lambda: ask(url, token, "GET", "/status") in (401, 429))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[a]\nmay = ['write']\nsha256 = []", "Invalid enum value 'write'"),
        ("[a]\nmay = ['read']\nsha256 = ['abc']", "64 hexadecimal digits"),
        ("[a]\nmay = ['all']\nsha256 = []\nstreams = ['x']", "cannot be limited to some updates"),
        ("[a]\nmay = ['read']\nsha256 = []\nrights = 1", "unknown field `rights`"),
        ("a = 1", "Expected `object`"),
        ("[a", "must be TOML"),
    ],
)
def test_files_that_are_refused(tmp_path, content, said):
    """With what is wrong, before the server starts."""
    file = tmp_path / "tokens.toml"
    file.write_text(content)
    with pytest.raises(DefinitionError, match=said):
        check(ServerOptions(tmp_path, tokens=file))


def test_the_access_log(tmp_path):
    """Every request is in it, with the token's name and never the token: refused ones too, and
    what was no request. A file that is moved away is made again."""
    log = tmp_path / "access.log"
    with opened(tmp_path / "store", guarded=True, access_log=str(log)) as door:
        door.answers()
        door.statuses(door.head("GET /slates/count/Walmart?x=1 HTTP/1.1"))
        door.statuses(door.head("GET /status HTTP/1.1", "Authorization: Bearer no", right=False))
        door.statuses(b"no HTTP at all\r\n\r\n")

        def lines() -> list[Access]:
            text = log.read_bytes().splitlines() if log.exists() else []
            return [msgspec.json.decode(line, type=Access) for line in text]

        until(lambda: len(lines()) == 4)
        found = [(one.token, one.method, one.path, one.status) for one in lines()]
        assert found == [
            ("token", "GET", "/healthz", 200),
            ("token", "GET", "/slates/count/Walmart?x=1", 400),
            (None, "GET", "/status", 401),
            (None, "", "", 400),
        ]
        assert {one.address for one in lines()} == {"127.0.0.1"}
        assert door.right["Authorization"].split()[1].encode() not in log.read_bytes()
        assert stat.S_IMODE(log.stat().st_mode) == 0o600
        log.rename(tmp_path / "access.log.1")

        def fresh() -> list[Access]:
            door.answers()
            return lines()

        until(fresh)


def test_a_proxy_that_is_trusted(tmp_path):
    """The clients behind a trusted proxy have separate limits. A client that only claims to be a
    proxy does not."""
    log = tmp_path / "access.log"
    more = {"access_log": str(log), "trusted_proxies": ("127.0.0.1",)}
    with opened(tmp_path / "store", guarded=True, **more) as door:
        wrong = ("Authorization: Bearer wrong", "X-Forwarded-For: 192.0.2.1")
        burst = door.head("GET /healthz HTTP/1.1", *wrong, right=False)
        found = [door.statuses(burst)[0] for _ in range(30)]
        assert set(found) == {401, 429}
        other = door.head(
            "GET /healthz HTTP/1.1", wrong[0], "X-Forwarded-For: 192.0.2.1, 192.0.2.2", right=False
        )
        assert door.statuses(other) == [401]
        until(lambda: log.exists() and b"192.0.2.2" in log.read_bytes())


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        ("10.0.0.1", b"192.0.2.7", "192.0.2.7"),
        ("10.0.0.1", b"6.6.6.6, 192.0.2.7, 10.0.0.2", "192.0.2.7"),
        ("10.0.0.1", b"6.6.6.6, nonsense, 10.0.0.2", "10.0.0.2"),
        ("10.0.0.1", b"", "10.0.0.1"),
        ("::ffff:10.0.0.1", b"2001:db8::1", "2001:db8::1"),
        ("192.0.2.9", b"6.6.6.6", "192.0.2.9"),
    ],
)
def test_whose_request_it_is(peer, forwarded, client):
    """The rightmost address that no trusted proxy has."""
    proxies = TrustedProxies(networks_in(["10.0.0.0/8"]))
    assert proxies.client(peer, [(b"x-forwarded-for", forwarded)]) == client
    with pytest.raises(DefinitionError, match="an address or a network"):
        networks_in(["proxy.example.org"])


def test_what_is_warned_of(tmp_path):
    """A token without TLS, and files that others may read."""
    token = tmp_path / "token"
    token.write_text("0123456789abcdef")
    token.chmod(0o600)
    quiet = ServerOptions(tmp_path, host="127.0.0.1", token="0123456789abcdef", token_file=token)
    assert warnings(quiet) == []
    (said,) = warnings(ServerOptions(tmp_path, host="0.0.0.0", token="0123456789abcdef"))
    assert "there is no TLS" in said
    token.chmod(0o644)
    (said,) = warnings(quiet)
    assert "can be read by other users" in said


def test_a_store_is_its_owners(tmp_path):
    """Others of the machine do not look into it."""
    Home.make(tmp_path / "deep" / "store", "retail", 4, {})
    assert stat.S_IMODE((tmp_path / "deep" / "store").stat().st_mode) == 0o700


class Fake:
    def __init__(self, group: str, standing: Standing | None) -> None:
        self.group, self._standing = group, standing

    def standing(self) -> Standing | None:
        return self._standing


def test_who_makes_room():
    """The address with the most connections, of these the idle ones without a token, the oldest
    first; nobody who is at work."""
    greedy = [Fake("a", Standing(0, n)) for n in range(5)] + [Fake("a", Standing(1, -1))]
    others = [Fake("b", Standing(0, -9)), Fake("b", None)]
    assert to_close([*others, *greedy], 8) == [greedy[0]]
    assert to_close([*others, *greedy], 256) == greedy[:3]
    assert to_close([Fake("a", None), *others], 8) == [others[0]]
    assert to_close([Fake("a", None)], 1) == []
