"""What a fetch may ask for and where it may connect, rule by rule."""

import ipaddress

import pytest

from memory.fetch_rules import (
    FetchRefused,
    checked_headers,
    is_loopback,
    is_public,
    parse_target,
)

INWARD = [
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "100.64.0.1",
    "100.100.100.200",
    "127.0.0.1",
    "127.255.255.254",
    "168.63.129.16",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.192",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.51.100.7",
    "203.0.113.9",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:8.8.8.8",
    "::ffff:0:127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b::808:808",
    "64:ff9b:1::a00:1",
    "100::1",
    "2001::1",
    "2001:0:7f00:1::",
    "2001:2::1",
    "2001:10::1",
    "2001:20::1",
    "2001:db8::1",
    "2002:7f00:1::",
    "2002:808:808::",
    "3fff::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fe80::1%eth0",
    "fec0::1",
    "ff02::1",
    "ff0e::1",
    "2606:4700::1%eth0",
    "",
    "localhost",
    "127.1",
    "0x7f000001",
    "2130706433",
]


@pytest.mark.parametrize("address", INWARD)
def test_an_address_that_leads_inwards_or_nowhere_is_not_public(address):
    assert not is_public(address)


@pytest.mark.parametrize(
    "address", ["93.184.215.14", "8.8.8.8", "192.0.1.1", "2606:4700::1111", "2a00:1450::1"]
)
def test_an_address_of_the_open_internet_is_public(address):
    assert is_public(address)
    assert not is_loopback(address)


def test_loopback_is_told_in_no_disguise():
    assert [address for address in INWARD if is_loopback(address)] == [
        "127.0.0.1",
        "127.255.255.254",
        "::1",
    ]


def test_every_address_that_the_standard_library_holds_for_private_is_refused():
    for network in (
        *ipaddress._IPv4Constants._private_networks,
        *ipaddress._IPv6Constants._private_networks,
    ):
        assert not is_public(str(network[0]))
        assert not is_public(str(network[-1]))


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://policies.example/", "scheme"),
        ("ftp://policies.example/", "scheme"),
        ("file:///etc/passwd", "scheme"),
        ("gopher://policies.example/", "scheme"),
        ("//policies.example/", "scheme"),
        ("policies.example", "scheme"),
        ("", "url"),
        ("https://user@policies.example/", "userinfo"),
        ("https://user:password@policies.example/", "userinfo"),
        ("https://policies.example@127.0.0.1/", "userinfo"),
        ("https://@policies.example/", "userinfo"),
        ("https://policies.example:8443/", "port"),
        ("https://policies.example:80/", "port"),
        ("https://policies.example:0/", "port"),
        ("https://policies.example:99999/", "url"),
        ("https://policies.example:x/", "url"),
        ("https:///path", "host"),
        ("https://./", "host"),
        ("https://localhost/", "host"),
        ("https://intranet/", "host"),
        ("https://policies.example./", "host"),
        ("https://policies..example/", "host"),
        ("https://-policies.example/", "host"),
        ("https://policies_of.example/", "host"),
        ("https://pol%69cies.example/", "host"),
        ("https://127.0.0.1%2f.example/", "host"),
        ("https://xn--a.example/", "host"),
        ("https://" + "a" * 64 + ".example/", "host"),
        ("https://" + "a." * 130 + "example/", "host"),
        ("https://127.0.0.1/", "address"),
        ("https://8.8.8.8/", "address"),
        ("https://[::1]/", "address"),
        ("https://[2606:4700::1111]/", "address"),
        ("https://[fe80::1%25eth0]/", "address"),
        ("https://127.1/", "host"),
        ("https://2130706433/", "host"),
        ("https://0x7f000001/", "host"),
        ("https://0x7f.0.0.0x1/", "host"),
        ("https://0177.0.0.1/", "host"),
        ("https://１２７.０.０.１/", "host"),
        ("https://127。0。0。1/", "host"),
        ("https://①②⑦.example:443x/", "url"),
        ("https://policies.example\\@127.0.0.1/", "url"),
        ("https://policies.example/a b", "url"),
        (" https://policies.example/", "url"),
        ("https://policies.example/\r\nHost: other", "url"),
        ("https://policies.example/\tx", "url"),
        ("https://policies.example/\x00", "url"),
        ("https://policies.example/\ud800", "url"),
        ("https://[policies.example/", "url"),
        ("https://policies.example/" + "a" * 3_000, "url"),
    ],
)
def test_an_address_outside_the_rules_is_refused(url, reason):
    with pytest.raises(FetchRefused) as caught:
        parse_target(url, allow_loopback=False)
    assert caught.value.reason == reason


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "other.example"},
        {"host": "other.example"},
        {"Accept-Encoding": "gzip"},
        {"Transfer-Encoding": "chunked"},
        {"Content-Length": "3"},
        {"Connection": "keep-alive"},
        {"Cookie": "a=b"},
        {"Proxy-Authorization": "x"},
        {"If-None-Match": '"a"\r\nX-Other: b'},
        {"If-None-Match": "ä"},
        {"If-None-Match": "\x00"},
        {"Bad Name": "x"},
        {"": "x"},
    ],
)
def test_headers_of_the_transport_and_headers_that_break_out_are_refused(headers):
    with pytest.raises(FetchRefused) as caught:
        checked_headers(headers, "policies.example")
    assert caught.value.reason == "header"


def test_a_plain_address_is_taken_apart():
    target = parse_target("https://Policies.Example:443/limits?at=now#part", allow_loopback=False)
    assert (target.scheme, target.host, target.port) == ("https", "policies.example", 443)
    assert (target.path, target.literal) == ("/limits?at=now", None)
    assert parse_target("https://policies.example", allow_loopback=False).path == "/"


def test_the_development_setting_takes_loopback_written_as_an_address():
    target = parse_target("http://[::1]:8000/", allow_loopback=True)
    assert (target.host, target.port, target.literal) == ("[::1]", 8000, "::1")
    assert parse_target("http://localhost/", allow_loopback=True).port == 80


def test_the_callers_headers_win_over_our_own_user_agent():
    sent = dict(checked_headers({"user-agent": "mine", "If-None-Match": '"a"'}, "h"))
    assert sent == {
        "user-agent": "mine",
        "If-None-Match": '"a"',
        "Accept-Encoding": "identity",
        "Connection": "close",
    }
