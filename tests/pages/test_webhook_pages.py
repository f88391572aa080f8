"""Webhooks as admins keep them on the pages, without scripts."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.http import HttpResponse

from tests.builders import TenantKit, make_tenant
from tests.pages.people import Person, person, text_of
from tests.webhooks.receiver import Receiver, is_signed, tell


@pytest.fixture
def receiver(settings: Any) -> Iterator[Receiver]:
    settings.KINDMEM_DEVELOPMENT = True
    with Receiver() as listening:
        yield listening


def once_of(answer: HttpResponse) -> str:
    found = re.search(r'name="once" value="([^"]+)"', answer.content.decode())
    assert found
    return found[1]


def added(admin: Person, receiver: Receiver, **more: Any) -> tuple[str, str]:
    """The webhook's page and its secret, as the pages show them."""
    fields = {
        "name": "Case system",
        "url": receiver.url,
        "once": once_of(admin.get("admin/webhooks/new")),
        **more,
    }
    answer = admin.post("admin/webhooks/new", fields)
    assert answer.status_code == 200, text_of(answer)
    secret = re.search(r"whsec_[A-Za-z0-9+/=]+", answer.content.decode())
    page = re.search(r"admin/webhooks/[0-9a-f-]{36}/", answer.content.decode())
    assert secret
    assert page
    # The same form again makes no second one, and shows no secret.
    again = admin.post("admin/webhooks/new", fields)
    assert again["Location"].endswith(page[0])
    return page[0], secret[0]


def test_an_admin_adds_one_tries_it_and_sees_what_came_of_it(
    live_acme: TenantKit, receiver: Receiver
) -> None:
    admin = person(live_acme, "admin")
    assert "No webhook yet" in text_of(admin.get("admin/webhooks/"))
    page, secret = added(admin, receiver)
    assert text_of(admin.get("admin/webhooks/")).count("Case system") == 1
    assert secret not in admin.get(page).content.decode()
    form = {"once": once_of(admin.get(page))}
    for _ in range(2):
        assert admin.post(f"{page}test", form)["Location"].endswith(page)
    tell(live_acme)
    [heard] = receiver.heard
    assert is_signed(heard, secret)
    shown = text_of(admin.get(page))
    assert "delivered" in shown
    assert "HTTP 200" in shown
    assert heard.id in shown


def test_one_delivery_and_the_events_of_some_days_are_told_again(
    live_acme: TenantKit, receiver: Receiver
) -> None:
    admin = person(live_acme, "admin")
    page, _secret = added(admin, receiver)
    live_acme.token("auditor")
    tell(live_acme)
    assert receiver.types() == ["key.created"]
    shown = admin.get(page).content.decode()
    button = re.search(r'name="delivery" value="([^"]+)"', shown)
    assert button
    assert admin.post(f"{page}replay", {"delivery": button[1]}).status_code == 302
    tell(live_acme)
    assert len(receiver.heard) == 2
    wrong = admin.post(f"{page}replay", {"since": "2026-02-02", "until": "2026-02-01"})
    assert wrong.status_code == 422
    assert "must not be after" in text_of(wrong)
    days = {"since": "2020-01-01", "until": "2099-01-01"}
    assert admin.post(f"{page}replay", days).status_code == 302
    tell(live_acme)
    assert len({heard.id for heard in receiver.heard}) == 1
    assert len(receiver.heard) == 3


def test_pause_another_secret_change_and_removal(live_acme: TenantKit, receiver: Receiver) -> None:
    admin = person(live_acme, "admin")
    page, secret = added(admin, receiver)
    assert admin.post(f"{page}switch", {"enabled": "0"}).status_code == 302
    assert "Paused" in text_of(admin.get(page))
    admin.post(f"{page}test", {"once": once_of(admin.get(page))})
    assert "It is off" in text_of(admin.get(page))
    admin.post(f"{page}switch", {"enabled": "1"})
    form = {"once": once_of(admin.get(f"{page}secret"))}
    second = re.search(r"whsec_[A-Za-z0-9+/=]+", admin.post(f"{page}secret", form).content.decode())
    assert second
    assert second[0] != secret
    assert admin.post(f"{page}secret", form).status_code == 302
    changed = {"name": "Cases", "url": receiver.url, "events": ["hold.placed"]}
    assert admin.post(f"{page}edit", changed).status_code == 302
    assert "A legal hold was placed" in text_of(admin.get(page))
    assert "Remove this webhook?" in text_of(admin.get(f"{page}remove"))
    assert admin.post(f"{page}remove").status_code == 302
    assert admin.get(page).status_code == 404


def test_an_address_that_is_refused_keeps_what_was_typed(live_acme: TenantKit) -> None:
    admin = person(live_acme, "admin")
    fields = {"name": "Mine", "url": "http://10.0.0.1/<b>", "events": ["hold.placed"]}
    answer = admin.post("admin/webhooks/new", fields)
    assert answer.status_code == 422
    assert "http://10.0.0.1/&lt;b&gt;" in answer.content.decode()
    assert "must be an https URL" in text_of(answer)


def test_only_admins_and_owners_of_the_tenant_see_them(
    live_acme: TenantKit, receiver: Receiver
) -> None:
    page, _secret = added(person(live_acme, "owner"), receiver)
    for role in ("auditor", "person"):
        for path in ("admin/webhooks/", page, f"{page}edit", f"{page}secret"):
            assert person(live_acme, role).get(path).status_code == 403
    other = person(make_tenant(), "admin")
    assert other.get(page).status_code == 404
    assert other.post(f"{page}switch", {"enabled": "0"}).status_code == 404
