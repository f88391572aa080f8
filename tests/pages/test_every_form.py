"""Every form of every page, sent with a token that went stale and after the session ended: nothing is done, the text is kept."""

import html
import re
from dataclasses import dataclass

from django.db import connection
from django.test import Client

from corrections.views.refused import NEVER_KEPT
from memory.tenancy import tenant_context
from tests.browser.scenery import scenery
from tests.builders import TenantKit
from tests.pages.people import Person, text_of

TYPED = "what I typed <b>here</b>"
_FORM = re.compile(r'<form\b[^>]*method="post"[^>]*>.*?</form>', re.S)
_FIELD = re.compile(r"<(input|textarea|select)\b([^>]*)>")


@dataclass(frozen=True)
class Form:
    """A form as a browser would send it, with each text field typed into."""

    reader: Person
    action: str
    fields: tuple[tuple[str, str], ...]

    @property
    def has_text(self) -> bool:
        """Whether something was typed that may be kept: a code or a password never is."""
        return any(value == TYPED for name, value in self.fields if name not in NEVER_KEPT)


def attribute(tag: str, name: str) -> str | None:
    found = re.search(rf'\b{name}="([^"]*)"', tag)
    return html.unescape(found.group(1)) if found else None


def form_of(reader: Person, page: str, text: str) -> Form:
    head = text[: text.index(">")]
    fields = {}
    for kind, tag in _FIELD.findall(text):
        name = attribute(tag, "name")
        if not name or name == "csrfmiddlewaretoken":
            continue
        is_typed = kind == "textarea" or attribute(tag, "type") in ("text", "search", None)
        fields[name] = TYPED if kind != "select" and is_typed else attribute(tag, "value") or ""
    return Form(reader, attribute(head, "action") or reader.path(page), tuple(fields.items()))


def forms_of(kit: TenantKit) -> list[Form]:
    """One of each kind: ids in addresses make no other kind."""
    made: dict[str, Form] = {}
    for reader, page in scenery(kit).pages.values():
        for text in _FORM.findall(reader.get(page).content.decode()):
            form = form_of(reader, page, text)
            shape = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "ID", form.action)
            made.setdefault(f"{shape} {sorted(name for name, _ in form.fields)}", form)
    return list(made.values())


def written(kit: TenantKit) -> tuple[int, int]:
    """How much was ever done: entries of the log, and forms that were taken."""
    with tenant_context(kit.id), connection.cursor() as cursor:
        cursor.execute("SELECT (SELECT count(*) FROM log_entry), (SELECT count(*) FROM page_form)")
        return tuple(cursor.fetchone())


def test_a_form_without_its_token_or_its_session_does_nothing_and_keeps_what_was_typed(
    live_acme: TenantKit,
) -> None:
    forms = forms_of(live_acme)
    assert len(forms) >= 15, [form.action for form in forms]
    before = written(live_acme)
    for form in forms:
        stale = Client(enforce_csrf_checks=True)
        stale.cookies = form.reader.browser.cookies
        answer = stale.post(form.action, dict(form.fields), headers={"Accept": "text/html"})
        assert answer.status_code == 403, form.action
        assert "Please send it again" in text_of(answer), form.action
        assert not form.has_text or html.escape(TYPED) in answer.content.decode(), form.action
        if form.reader.role == "stranger":
            continue
        signed_out = Client().post(form.action, dict(form.fields), headers={"Accept": "text/html"})
        if form.action.startswith(("/account/", "/operator/")):
            assert signed_out.status_code == 302, form.action
            assert signed_out["Location"].startswith(("/account/", "/operator/")), form.action
            continue
        assert signed_out.status_code == 401, form.action
        assert "Your session has ended" in text_of(signed_out), form.action
        assert not form.has_text or html.escape(TYPED) in signed_out.content.decode(), form.action
    assert written(live_acme) == before
