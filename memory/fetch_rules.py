"""What a fetch may ask for and where it may connect: pure rules, no socket.

The deny tables are our own: `ipaddress.is_global` says True for NAT64 and 6to4 forms of
loopback, and for multicast. Sources: the IANA special-purpose address registries.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal
from urllib.parse import quote, urlsplit

import idna

MAX_URL_CHARS = 2_048

RefusalReason = Literal[
    "in-transaction",
    "url",
    "scheme",
    "userinfo",
    "host",
    "port",
    "address",
    "header",
    "method",
    "redirect",
    "content-encoding",
]


_IPV4_DENIED = tuple(
    ipaddress.IPv4Network(network)
    for network in (
        "0.0.0.0/8",  # "this host"
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # carrier-grade NAT; a cloud's metadata at 100.100.100.200
        "127.0.0.0/8",  # loopback
        "168.63.129.16/32",  # a cloud's host agent, on a public address
        "169.254.0.0/16",  # link-local; metadata at 169.254.169.254
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments
        "192.0.2.0/24",  # documentation
        "192.31.196.0/24",  # AS112
        "192.52.193.0/24",  # AMT
        "192.88.99.0/24",  # 6to4 relay
        "192.168.0.0/16",  # private
        "192.175.48.0/24",  # AS112
        "198.18.0.0/15",  # benchmarking
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, broadcast
    )
)
# Global unicast alone is allowed. That leaves out loopback, unspecified, mapped and compatible
# IPv4, NAT64 (64:ff9b::/96, 64:ff9b:1::/48), unique local, link-local, fec0::/10, multicast.
_IPV6_ALLOWED = ipaddress.IPv6Network("2000::/3")
_IPV6_DENIED = tuple(
    ipaddress.IPv6Network(network)
    for network in (
        "2001::/23",  # protocol assignments: Teredo, ORCHID, benchmarking
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4: an IPv4 address inside
        "2620:4f:8000::/48",  # AS112
        "3fff::/20",  # documentation
    )
)

# What belongs to the transport, or would make a shared connection carry somebody's identity.
_RESERVED_HEADERS = frozenset(
    (
        *("host", "connection", "content-length", "transfer-encoding", "te", "trailer"),
        *("upgrade", "expect", "keep-alive", "accept-encoding", "cookie"),
        *("proxy-authorization", "proxy-connection"),
    )
)
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[\x20-\x7e]*")
_URL = re.compile(r"[^\x00-\x20\x7f-\xa0\\\u2028\u2029\ud800-\udfff]+")
_PRINTABLE = "".join(map(chr, range(0x21, 0x7F)))
_NUMERIC_LABEL = re.compile(r"\d+|0x[0-9a-f]*")


class FetchError(Exception):
    """Base of all that `fetch` raises; `host` is named, never path, query or what was fetched."""

    code = "fetch-failed"

    def __init__(self, reason: str, host: str = "") -> None:
        super().__init__(f"{host}: {reason}" if host else reason)
        self.reason = reason
        self.host = host


class FetchRefused(FetchError):
    """A rule forbids it; `reason` is a RefusalReason. Asking again will not help."""

    code = "fetch-refused"


class FetchTimeout(FetchError):
    """The deadline passed while waiting, resolving, connecting, sending or reading."""

    code = "fetch-timeout"


class FetchTooLarge(FetchError):
    """The body is larger than was allowed."""

    code = "fetch-too-large"


class FetchFailed(FetchError):
    """The name does not resolve, nobody listens, TLS does not verify, or it is not HTTP."""

    code = "fetch-failed"


@dataclass(frozen=True)
class Target:
    """A checked address; `literal` is the host where it is written as an IP address."""

    scheme: str
    host: str
    port: int
    path: str
    literal: str | None


def parse_target(url: str, *, allow_loopback: bool) -> Target:
    """Read an address under the rules that need no name resolution; raises FetchRefused."""
    if len(url) > MAX_URL_CHARS or not _URL.fullmatch(url):
        raise FetchRefused("url")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise FetchRefused("url") from error
    if parts.scheme != "https" and not (parts.scheme == "http" and allow_loopback):
        raise FetchRefused("scheme")
    if "@" in parts.netloc:
        raise FetchRefused("userinfo")
    host, literal = _checked_host(parts.hostname or "", allow_loopback=allow_loopback)
    if port is None:
        port = 443 if parts.scheme == "https" else 80
    if port != 443 and not (allow_loopback and port):
        raise FetchRefused("port", host)
    path = quote(parts.path or "/", safe=_PRINTABLE)
    if parts.query:
        path += "?" + quote(parts.query, safe=_PRINTABLE)
    return Target(parts.scheme, host, port, path, literal)


def _checked_host(host: str, *, allow_loopback: bool) -> tuple[str, str | None]:
    """The host in ASCII, and its address where it is written as one (loopback only)."""
    if _parsed(host) is not None:
        if allow_loopback and is_loopback(host):
            return (f"[{host}]" if ":" in host else host), host
        raise FetchRefused("address")
    try:
        name = idna.encode(host, uts46=True).decode("ascii")
    except (idna.IDNAError, UnicodeError) as error:
        raise FetchRefused("host") from error
    labels = name.split(".")
    # `127.1`, `0x7f.1` and `2130706433` are addresses to some resolvers; no top level is numeric.
    if _NUMERIC_LABEL.fullmatch(labels[-1]) or not labels[-1] or len(name) > 253:
        raise FetchRefused("host")
    if len(labels) == 1 and not (allow_loopback and name == "localhost"):
        raise FetchRefused("host")
    return name, None


def checked_headers(headers: Mapping[str, str], host: str) -> list[tuple[str, str]]:
    """The caller's headers and our own; raises FetchRefused for one that is the transport's."""
    for name, value in headers.items():
        if (
            not _HEADER_NAME.fullmatch(name)
            or not _HEADER_VALUE.fullmatch(value)
            or name.lower() in _RESERVED_HEADERS
        ):
            raise FetchRefused("header", host)
    names = {name.lower() for name in headers}
    own = {"Accept-Encoding": "identity", "Connection": "close", "User-Agent": "kindmem"}
    return [*headers.items(), *(pair for pair in own.items() if pair[0].lower() not in names)]


def is_public(address: str) -> bool:
    """Whether an IP address is one that a fetch may connect to."""
    parsed = _parsed(address)
    if isinstance(parsed, ipaddress.IPv4Address):
        return not any(parsed in network for network in _IPV4_DENIED)
    if isinstance(parsed, ipaddress.IPv6Address):
        return (
            parsed.scope_id is None
            and parsed in _IPV6_ALLOWED
            and not any(parsed in network for network in _IPV6_DENIED)
        )
    return False


def is_loopback(address: str) -> bool:
    """Whether an IP address is 127.0.0.0/8 or ::1, in no disguise."""
    parsed = _parsed(address)
    if isinstance(parsed, ipaddress.IPv4Address):
        return parsed in ipaddress.IPv4Network("127.0.0.0/8")
    return parsed == ipaddress.IPv6Address("::1")


def _parsed(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(address)
    except ValueError:
        return None
