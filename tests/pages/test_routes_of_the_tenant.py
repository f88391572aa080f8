"""Correction routes of a tenant, as admins keep them and people meet them."""

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
