"""Addresses of webhooks: none of the operator's own network is ever dialed, however it is written or looked up."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from a2a_grpc.config import OptionError, Options
from a2a_grpc.push_guard import FORBIDDEN, UNUSABLE, Guard
from a2a_grpc.push_post import HttpPoster
from tests.name_server import PUBLIC, apart
from tests.peers import listening

OPEN = """https://hooks.example/in?x=1 http://hooks.example:8080/ https://HOOKS.example./ https://8.8.8.8/
    https://[2606:4700:4700::1111]/ https://[64:ff9b::8.8.8.8]/ https://bücher.example/ https://a_b.example/
    https://localhost.example/ https://10.example/ https://172.32.0.1/ https://100.128.0.1/ https://hooks.example/@me"""
CLOSED = """
    http://127.0.0.1/ http://127.0.0.1:80/ http://127.255.255.254/ http://0.0.0.0/ http://0.1.2.3/ http://10.0.0.1/
    http://10.255.255.255/ http://172.16.0.1/ http://172.31.255.255/ http://192.168.1.1/ http://169.254.169.254/latest
    http://169.254.170.2/ http://100.64.0.1/ http://100.100.100.200/ http://192.0.0.192/ http://168.63.129.16/
    http://224.0.0.1/ http://239.255.255.250/ http://240.0.0.1/ http://255.255.255.255/ http://198.18.0.1/
    http://192.0.2.1/ http://203.0.113.9/ http://192.88.99.1/
    http://[::1]/ http://[::]/ http://[0:0:0:0:0:0:0:1]/ http://[::ffff:127.0.0.1]/ http://[::ffff:7f00:1]/
    http://[::ffff:10.0.0.1]/ http://[::ffff:169.254.169.254]/ http://[::127.0.0.1]/ http://[::ffff:0:127.0.0.1]/
    http://[fe80::1]/ http://[fec0::1]/ http://[fc00::1]/ http://[fd00:ec2::254]/ http://[ff02::1]/ http://[100::1]/
    http://[64:ff9b::127.0.0.1]/ http://[64:ff9b::a9fe:a9fe]/ http://[64:ff9b:1::1]/ http://[2002:7f00:1::]/
    http://[2002:a9fe:a9fe::1]/ http://[2001:0:7f00:1::]/ http://[2001:db8::1]/ http://[3fff::1]/
    http://2130706433/ http://0x7f000001/ http://0x7f.0.0.1/ http://0177.0.0.1/ http://017700000001/ http://127.1/
    http://127.0.1/ http://0/ http://127.0.0.1./ http://0x7f.1/ http://00000177.1/ http://127.0.0.0x1/
    http://example.1/ http://4294967296/ http://256.256.256.256/
    http://\uff11\uff12\uff17.0.0.1/ http://①②⑦.⓪.⓪.①/ http://127。0。0。1/ http://ⓛocalhost/
    http://localhost/ http://LOCALHOST:8080/ http://localhost./ http://a.localhost/ http://localhost.localdomain/
    http://printer.local/ http://metadata.google.internal/ http://metadata/ http://redis:6379/ http://nas.home.arpa/
    http://wiki.intranet/ http://router.lan/
    http://user@hooks.example/ http://user:pw@hooks.example/ http://@hooks.example/ http://hooks.example@127.0.0.1/
    http://127.0.0.1@hooks.example/ http://:@hooks.example/
    http://127.0.0.1\\@hooks.example/ http://hooks.example\\.127.0.0.1/ http://%31%32%37.0.0.1/ http://[fe80::1%25eth0]/
    http://[::1%25lo]/ http://[2606:4700::1%25eth0]/ http://127.0.0.1%2f@hooks.example/ http://-/
    ftp://hooks.example/ file:///etc/passwd gopher://127.0.0.1/ javascript:alert(1) data:text/plain,x unix:///run/x
    //hooks.example/ hooks.example/in http: http:// http:/// https:///in http:hooks.example http://:80/
    http://hooks.example:0/ http://hooks.example:99999/ http://hooks.example:port/ http://[::1/ http://]/
"""


@pytest.mark.requirement("PUSH-21", "BL-05", "SEC-03")
@pytest.mark.parametrize("url", OPEN.split())
def test_a_public_address_may_be_called(url: str) -> None:
    assert Guard().refusal(url) == ""


@pytest.mark.requirement("PUSH-02", "PUSH-21", "BL-05", "SEC-03")
@pytest.mark.parametrize(
    "url", [*CLOSED.split(), "", " http://hooks.example/", "http://hooks.example/\r\nX: y", "http://a\tb.c/"]
)
def test_an_inside_address_is_refused_however_it_is_written(url: str) -> None:
    assert Guard().refusal(url)


def test_the_refusal_says_what_is_wrong() -> None:
    guard = Guard(https_only=True)
    assert guard.refusal("https://10.0.0.1/") == guard.refusal("https://localhost/") == FORBIDDEN
    assert guard.refusal("ftp://hooks.example") == UNUSABLE
    assert "usual form" in guard.refusal("https://0x7f000001/")
    assert "user name" in guard.refusal("https://a:b@hooks.example/")


@pytest.mark.requirement("PUSH-22")
def test_webhooks_without_tls_are_refused_where_the_operator_wants_it() -> None:
    assert "https" in Guard(https_only=True).refusal("http://hooks.example/")
    assert Guard().refusal("http://hooks.example/") == ""


@pytest.mark.requirement("PUSH-21", "BL-05")
def test_the_operator_lets_single_hosts_and_networks_through() -> None:
    guard = Guard(("10.1.0.0/16", "127.0.0.1", "fd00::/8", "Redis"))
    for url in ("http://10.1.2.3/", "http://127.0.0.1:99/", "http://[fd00::1]/", "http://redis:6379/x"):
        assert guard.refusal(url) == ""
    for url in ("http://10.2.0.1/", "http://127.0.0.2/", "http://[fe80::1]/", "http://my.redis.local/"):
        assert guard.refusal(url)
    assert guard.admits(ip_address("::ffff:10.1.0.1")) and not guard.admits(ip_address("::ffff:10.2.0.1"))


def test_a_network_that_is_none_is_no_option() -> None:
    with pytest.raises(OptionError, match="push_allow"):
        Options(push_allow=("10.0.0.1/8",))


# -- looked up


def answers(*addresses: str) -> list[Any]:
    """What socket.getaddrinfo says of a name with these addresses."""
    families = [socket.AF_INET6 if ":" in address else socket.AF_INET for address in addresses]
    return [(kind, socket.SOCK_STREAM, 6, "", (address, 0)) for kind, address in zip(families, addresses, strict=True)]


@asynccontextmanager
async def inside() -> AsyncIterator[tuple[int, list[str]]]:
    """Something that listens on the loopback, and the paths that it is asked for."""
    asked: list[str] = []

    async def take(request: web.BaseRequest) -> web.Response:
        asked.append(request.path)
        return web.Response()

    async with listening(take) as address:
        yield int(address.rpartition(":")[2]), asked


@asynccontextmanager
async def poster(guard: Guard, lookup: Any) -> AsyncIterator[HttpPoster]:
    made = HttpPoster(guard, 10, lookup)
    made.open()
    try:
        yield made
    finally:
        await made.close()


@pytest.mark.parametrize("address", ["127.0.0.1", "::ffff:127.0.0.1", "::1"])
@pytest.mark.requirement("PUSH-21", "BL-05")
async def test_a_public_name_that_stands_for_an_inside_address_is_not_called(address: str) -> None:
    async with inside() as (port, asked), poster(Guard(), lambda *_, **__: answers(address)) as made:
        outcome = await made.post(f"http://hooks.example:{port}/", {}, b"{}")
        assert not outcome.delivered and "hooks.example" in outcome.said
        assert asked == []


@pytest.mark.requirement("PUSH-21", "BL-05")
async def test_a_name_server_that_changes_its_mind_gets_nobody_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first answer is public, each later one is not: what was judged is dialed, and nothing is looked up twice."""
    dialed: list[str] = []
    rounds = iter([answers("203.1.113.7"), answers("127.0.0.1"), answers("127.0.0.1")])

    async def connect(self: Any, sock: socket.socket, place: Any) -> None:
        dialed.append(place[0])
        raise ConnectionRefusedError

    async with inside() as (port, asked), poster(Guard(), lambda *_, **__: next(rounds)) as made:
        with monkeypatch.context() as patch:
            patch.setattr(type(asyncio.get_running_loop()), "sock_connect", connect)
            assert not (await made.post(f"http://hooks.example:{port}/", {}, b"")).delivered
        assert dialed == ["203.1.113.7"]
    async with inside() as (port, asked), poster(Guard(), lambda *_, **__: next(rounds)) as made:
        assert not (await made.post(f"http://hooks.example:{port}/", {}, b"")).delivered
        assert asked == []


@pytest.mark.requirement("PUSH-21")
async def test_of_mixed_answers_only_the_admitted_are_called() -> None:
    guard = Guard(("127.0.0.1/32",))
    async with inside() as (port, asked), poster(guard, lambda *_, **__: answers("10.0.0.1", "127.0.0.1")) as made:
        assert (await made.post(f"http://hooks.example:{port}/in", {}, b"")).delivered
        assert asked == ["/in"]


@pytest.mark.requirement("PUSH-21", "BL-05")
async def test_no_proxy_of_the_environment_goes_round_the_guard(monkeypatch: pytest.MonkeyPatch) -> None:
    async with inside() as (port, asked), poster(Guard(), lambda *_, **__: answers("10.0.0.1")) as made:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{port}")
        assert not (await made.post("http://hooks.example/", {}, b"")).delivered
        assert asked == []


@pytest.mark.requirement("PUSH-21", "BL-05")
async def test_a_config_from_a_laxer_time_is_judged_again_before_it_is_called() -> None:
    async with inside() as (port, asked), poster(Guard(), socket.getaddrinfo) as made:
        for host in ("127.0.0.1", "2130706433", "localhost", "[::1]"):
            outcome = await made.post(f"http://{host}:{port}/", {}, b"")
            assert not outcome.delivered and outcome.said.startswith("its address")
        assert asked == []


@pytest.mark.requirement("PUSH-21", "BL-05", "SEC-03")
async def test_a_real_name_server_that_changes_its_mind_gets_nobody_inside(tmp_path: Path) -> None:
    """Looked up by the system, dialed over TCP: what arrived is told by the socket that it arrived at."""
    found = await asyncio.to_thread(apart, tmp_path)
    if found is None:
        pytest.skip("needs namespaces of its own (unshare)")
    asked = found.pop("asked")
    refused = {name: [[], f"{name} stands for no address that webhooks may have"] for name in found}
    assert found == {
        "steady.example": [[[PUBLIC], ""]] * 2,
        "flips.example": [[[PUBLIC], ""], refused["flips.example"]],
        "mixed.example": [[[PUBLIC], ""]] * 2,
        **{name: [refused[name]] * 2 for name in ("inside.example", "mapped.example")},
    }
    assert all(asked.values()), asked
