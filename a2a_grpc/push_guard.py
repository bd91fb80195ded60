"""Which addresses webhooks may have, so that no config of a caller reaches into the operator's network (BL-05, SEC-03).

Laws: tables and checks, no I/O. What is written in a config is judged when the config is made and before each request;
what a name stands for is judged where it is looked up, and only what was judged is dialed. Hosts are read by the same
library that reads them for dialing, so both see the same host.
"""

import re
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

from yarl import URL

WEBHOOK_SCHEMES: Final = ("https", "http")

UNUSABLE: Final = "must be an absolute http or https address"
FORBIDDEN: Final = "must not name a host inside the server's own network"

Address = IPv4Address | IPv6Address

_CLOSED: Final = """
    0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.168.0.0/16
    192.0.0.0/24 192.0.2.0/24 192.88.99.0/24 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4
    168.63.129.16/32
    2001::/23 2001:db8::/32 2002::/16 3fff::/20
"""
CLOSED: Final = tuple(map(ip_network, _CLOSED.split()))
"""What is nobody's in public: this host, private, carriers', loopback, link and metadata; protocols', documentation,
benchmarks, multicast, reserved; the metadata of one cloud; in IPv6 Teredo and other protocols', documentation, 6to4."""

OPEN_6: Final = IPv6Network("2000::/3")
"""What of IPv6 is public: not loopback, unspecified, unique and link-local, site-local, multicast, translations."""

CARRIES_4: Final = (IPv6Network("::ffff:0:0/96"), IPv6Network("64:ff9b::/96"))
"""IPv6 forms whose last 32 bits are the IPv4 address that is meant: mapped, and NAT64."""

INSIDE: Final = ("localhost", "localdomain", "local", "internal", "intranet", "lan", "home.arpa")
"""Last labels of names that only an inside knows. A name of one label is such a name, too."""

_UNFIT: Final = re.compile(r"[\x00-\x20\x7f\\]")
_NAME: Final = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*")
_NUMBER: Final = re.compile(r"[0-9]+|0x[0-9a-f]*")


class Guard:
    """Judges hosts and addresses. allow: what the operator lets through all the same: addresses and networks such as
    `10.1.0.0/16`, and names of hosts, which may then stand for anything; default nothing. https_only: refuse http."""

    def __init__(self, allow: Iterable[str] = (), https_only: bool = False) -> None:
        self._networks = []
        self._names = set()
        self._https_only = https_only
        for entry in allow:
            try:
                self._networks.append(ip_network(entry))
            except ValueError:
                self._names.add(entry.lower())

    def refusal(self, url: str) -> str:
        """What is wrong with the address of a webhook, "" if nothing is (PUSH-02, PUSH-21, PUSH-22)."""
        try:
            address = URL(url)
            host, port, secret = address.raw_host or "", address.port, address.user or address.password
        except ValueError:
            return UNUSABLE
        if address.scheme not in WEBHOOK_SCHEMES or not host or not port or _UNFIT.search(url):
            return UNUSABLE
        if self._https_only and address.scheme != "https":
            return "must begin with https"
        if secret is not None or "@" in address.raw_authority or "@" in url.partition("//")[2].partition("/")[0]:
            return "must not hold a user name or password"
        return self._host(host)

    def _host(self, host: str) -> str:
        name = host.lower().removesuffix(".")
        if name in self._names:
            return ""
        # Whatever ends in a number is taken for an address by somebody on the way, however it is written.
        if ":" in host or _NUMBER.fullmatch(name.rpartition(".")[2]):
            try:
                return "" if self.admits(ip_address(host)) else FORBIDDEN
            except ValueError:
                return "must write an address in its usual form"
        if not _NAME.fullmatch(name):
            return UNUSABLE
        inside = "." not in name or any(name.endswith(f".{last}") for last in INSIDE)
        return FORBIDDEN if inside else ""

    def trusts(self, host: str) -> bool:
        """Whether the operator has listed a name, whatever it stands for."""
        return host.lower().removesuffix(".") in self._names

    def admits(self, address: Address) -> bool:
        """Whether webhooks may be sent to an address."""
        if any(address in network for network in self._networks):
            return True
        if isinstance(address, IPv4Address):
            return not any(address in network for network in CLOSED)
        if any(address in network for network in CARRIES_4):
            return self.admits(IPv4Address(int(address) & 0xFFFFFFFF))
        public = address in OPEN_6 and address.scope_id is None
        return public and not any(address in network for network in CLOSED)
