"""Correction routes of a tenant, as admins keep them and people meet them."""

import re

from django.db import connection
from django.test.utils import CaptureQueriesContext

from memory.tenancy import tenant_context
from tests.builders import TenantKit
from tests.pages.people import person, text_of
from tests.records.builders import a_record, body_of


def test_a_route_that_only_a_record_names_is_flagged_until_an_admin_configures_it(
    acme: TenantKit,
) -> None:
    app, admin = acme.client("app", users=["ann"]), person(acme, "admin")
    record = body_of(app.post("/v1/memory/records", a_record(route="seat-form")), 201)["id"]
    assert "not configured" in text_of(admin.get("admin/routes/"))
    fields = {
        "label": "Ask the seat desk",
        "url_template": "https://seats.example.com/fix?record={record_id}",
        "audience": "person",
    }
    assert admin.post("admin/routes/seat-form/", fields).status_code == 302
    assert "not configured" not in text_of(admin.get("admin/routes/"))
    ann = person(acme, "person", subject="ann")
    assert "Ask the seat desk" in text_of(ann.get(f"memory/{record}/"))
    away = ann.get(f"memory/{record}/correct/seat-form")
    assert away["Location"] == f"https://seats.example.com/fix?record={record}"


def test_an_unsafe_page_of_ones_own_is_refused_with_the_text_kept(acme: TenantKit) -> None:
    admin = person(acme, "admin")
    fields = {"name": "mine", "label": "Mine", "audience": "person",
              "url_template": "javascript:alert({record_id})"}  # fmt: skip
    answer = admin.post("admin/routes/new", fields)
    assert answer.status_code == 422
    assert "javascript:alert({record_id})" in answer.content.decode()


def test_a_built_in_route_takes_new_words_and_nothing_else(acme: TenantKit) -> None:
    admin = person(acme, "admin")
    admin.post("admin/routes/forget/", {"label": "Out of my life", "description": "Gone."})
    assert "Out of my life" in text_of(admin.get("admin/routes/"))
    assert 'name="url_template"' not in admin.get("admin/routes/forget/").content.decode()


def test_a_taken_name_is_refused(acme: TenantKit) -> None:
    fields = {"name": "forget", "label": "Mine", "audience": "person"}
    answer = person(acme, "admin").post("admin/routes/new", fields)
    assert answer.status_code == 422
    assert "There is a route of this name" in text_of(answer)


def test_auditors_and_people_do_not_keep_routes(acme: TenantKit) -> None:
    for role in ("auditor", "person"):
        assert person(acme, role).get("admin/routes/").status_code == 403


def many_routes(kit: TenantKit, count: int, *, is_configured: bool, prefix: str) -> list[str]:
    """Routes as a record's naming them, or an admin's registering them, leaves them."""
    names = [f"{prefix}-{n:04}" for n in range(count)]
    with tenant_context(kit.id), connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO correction_route (tenant_id, name, label, is_configured, created_at, created_by, updated_at, updated_by)"
            " SELECT %s::uuid, u.name, u.name, %s::bool, now(), 'user:1', now(), 'user:1' FROM unnest(%s::text[]) AS u (name)",
            [kit.id, is_configured, names],
        )
    return names


def test_very_many_routes_are_read_page_by_page_each_once(acme: TenantKit) -> None:
    waiting = many_routes(acme, 1_030, is_configured=False, prefix="z")
    own = many_routes(acme, 120, is_configured=True, prefix="a")
    admin, address, seen, pages = person(acme, "admin"), "admin/routes/", [], 0
    while True:
        with CaptureQueriesContext(connection) as queries:
            answer = admin.get(address)
        html = answer.content.decode()
        assert answer.status_code == 200
        assert len(queries) <= 12
        assert len(answer.content) < 100_000
        assert ("Never guess" in html or "never-infer" in html) is (pages == 0)
        seen += re.findall(r'href="[^"]*/admin/routes/([az]-\d{4})/"', html)
        pages += 1
        following = re.search(r'href="[^"]*(\?after=[^"]+)"[^>]*data-next', html)
        if following is None:
            break
        address = "admin/routes/" + following[1].replace("&amp;", "&")
    assert seen == waiting + own
    assert pages == 12
    assert admin.get("admin/routes/?after=nonsense").status_code == 200


def test_a_record_beyond_the_first_thousand_names_shows_its_route(acme: TenantKit) -> None:
    many_routes(acme, 1_010, is_configured=True, prefix="a")
    app, ann = acme.client("app", users=["ann"]), person(acme, "person", subject="ann")
    fields = {
        "name": "zz",
        "label": "The last desk",
        "url_template": "https://desk.example.com/{record_id}",
    }
    body_of(acme.client("admin").post("/v1/memory/routes", fields), 201)
    record = body_of(app.post("/v1/memory/records", a_record(route="zz")), 201)["id"]
    assert "The last desk" in text_of(ann.get(f"memory/{record}/"))
