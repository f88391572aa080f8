"""Connections that are watched, and a certificate to trust."""

import socket

import pytest

from memory import fetch_rules, fetcher
from tests.fetcher.server import NAME, self_signed


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    return self_signed(NAME, tmp_path_factory.mktemp("tls"))


@pytest.fixture(autouse=True)
def _outside_transactions(monkeypatch):
    monkeypatch.setattr(fetcher, "is_in_transaction", lambda: False)


@pytest.fixture
def connections(monkeypatch):
    """Record where connections go; a public address leads to the port in `redirected`."""
    made = []
    connect = socket.create_connection

    def create_connection(address, timeout=None, **options):
        made.append(address)
        if fetch_rules.is_public(address[0]):
            if create_connection.leads_to is None:
                raise ConnectionRefusedError
            address = ("127.0.0.1", create_connection.leads_to)
        return connect(address, timeout, **options)

    create_connection.leads_to = None
    create_connection.made = made
    monkeypatch.setattr(socket, "create_connection", create_connection)
    return create_connection
