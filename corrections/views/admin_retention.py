"""How long facts stay: the ladder, the workspace's default, a rule a type; each change is simulated, and saved only as shown."""

from typing import Any

from django.contrib import messages
from django.db import connection, transaction
from django.http import HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods

from corrections.bound_preview import FIELD, is_still, seal_of
from corrections.forms_retention import RuleForm, TypeForm
from corrections.htmx import render_page
from corrections.once import new_key, sent_once
from corrections.paging import address
from corrections.proof import must_be_proved
from corrections.queries.names import names_of
from corrections.queries.retention_rules import type_rules
from corrections.retention_words import ladder_in_general, type_words, window_words
from corrections.views.admin_holds import position
from corrections.visit import APPOINTING, GOVERNING, Visit, in_tenant
from memory.actions.set_retention import RetentionSettings, retention_settings, set_retention
from memory.actions.set_type_retention import set_type_retention
from memory.api.pagination import make_cursor
from memory.queries.sweeps import past_sweeps
from memory.retention import Simulation, default_windows, simulate
from memory.type_policy import type_policy

RULES_A_PAGE = 40
PURPOSE = "retention rule"


@require_GET
@in_tenant(*GOVERNING)
def retention(visit: Visit) -> HttpResponse:
    request, tenant_id = visit.request, visit.principal.tenant_id
    after = position(visit, "type-rules", {})
    rules = type_rules(visit.principal, after=after[0] if after else None, limit=RULES_A_PAGE + 1)
    shown, older = rules[:RULES_A_PAGE], None
    if len(rules) > RULES_A_PAGE:
        cursor = make_cursor(visit.principal, "type-rules", {}, [shown[-1].type])
        older = address(request, after=cursor)
    settings = retention_settings(tenant_id)
    latest = past_sweeps(tenant_id, limit=1)
    context = {
        "settings": settings,
        "default": window_words(settings.keep_days, settings.delete_after_days),
        "ladder": ladder_in_general(),
        "rules": [
            {"rule": one, "words": window_words(one.keep_days, one.delete_after_days)}
            for one in shown
        ],
        "names": names_of(visit.principal, [one.updated_by for one in shown]),
        "latest": latest[0] if latest else None,
        "older": older,
        "newest": request.path if after else None,
        "form": TypeForm(),
        "may_act": visit.may(*APPOINTING),
    }
    return render_page(request, "govern/retention.html", context)


def _before(visit: Visit, type: str) -> RetentionSettings:
    """The rule as it stands. `type` empty: the default."""
    if not type:
        return retention_settings(visit.principal.tenant_id)
    policy = type_policy(visit.principal.tenant_id, type)
    return RetentionSettings(policy.keep_days, policy.delete_after_days)


@require_GET
@in_tenant(*APPOINTING)
def rule(visit: Visit) -> HttpResponse:
    given = visit.request.GET
    named = TypeForm(given)
    if not named.is_valid():
        return _rule_page(visit, RuleForm(given, is_default=False), "", status=422)
    type = named.cleaned_data["type"]
    before = _before(visit, type)
    initial: dict[str, Any] = {
        "type": type,
        "keep_days": before.keep_days,
        "delete_after_days": before.delete_after_days,
        "grace_days": before.grace_days,
    }
    initial |= {name: given[name] for name in RuleForm.base_fields if given.get(name)}
    return _rule_page(visit, RuleForm(initial=initial, is_default=not type), type)


def _rule_page(visit: Visit, form: RuleForm, type: str, *, status: int = 200) -> HttpResponse:
    context = {"form": form, "type": type}
    return render_page(visit.request, "govern/retention_rule.html", context, status=status)


@require_http_methods(["GET", "POST"])
@in_tenant(*APPOINTING)
def preview(visit: Visit) -> HttpResponse:
    """What the rule in the address would do; a press saves just that."""
    type = visit.request.GET.get("type", "").strip()
    form = RuleForm(visit.request.GET, is_default=not type)
    if not form.is_valid():
        return _rule_page(visit, form, type, status=422)
    if visit.request.method != "POST":
        return _preview_page(visit, form)
    must_be_proved(visit)
    with transaction.atomic():
        _lock(visit)
        before, after, simulation = _looked_at(visit, form)
        shown = _shown(visit, form, before, after, simulation)
        if is_still(PURPOSE, visit.request.POST.get(FIELD, ""), shown):
            return sent_once(visit, lambda: _save(visit, form, after))
    if _is_same(before, after):
        # A second press of the same form, or the same rule by somebody else: it stands as asked for.
        return HttpResponseRedirect(visit.url("retention"))
    return _preview_page(visit, form, has_changed=True)


def _is_same(before: RetentionSettings, after: RetentionSettings) -> bool:
    return before == after


def _lock(visit: Visit) -> None:
    """Nobody else changes the default between the look and the press."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT FROM tenant WHERE id = %s::uuid FOR NO KEY UPDATE", [visit.principal.tenant_id]
        )


def _looked_at(
    visit: Visit, form: RuleForm
) -> tuple[RetentionSettings, RetentionSettings, Simulation]:
    """The rule before, the rule after, and what the change does."""
    given = form.cleaned_data
    before = _before(visit, given["type"])
    after = RetentionSettings(
        given["keep_days"],
        given["delete_after_days"],
        given.get("grace_days") or 0,
        before.sweep_is_off,
    )
    simulation = simulate(
        visit.principal.tenant_id,
        type=given["type"] or None,
        keep_days=after.keep_days,
        delete_after_days=after.delete_after_days,
    )
    return before, after, simulation


def _shown(
    visit: Visit,
    form: RuleForm,
    before: RetentionSettings,
    after: RetentionSettings,
    simulation: Simulation,
) -> list[str | int | None]:
    rules = [
        number
        for one in (before, after)
        for number in (one.keep_days, one.delete_after_days, one.grace_days)
    ]
    numbers = [simulation.changed, simulation.due, simulation.due_now, simulation.held]
    return [visit.principal.writer, form.cleaned_data["type"], *rules, *numbers]


def _save(visit: Visit, form: RuleForm, after: RetentionSettings) -> str:
    type = form.cleaned_data["type"]
    if type:
        set_type_retention(
            principal=visit.principal,
            type=type,
            keep_days=after.keep_days,
            delete_after_days=after.delete_after_days,
        )
    else:
        set_retention(principal=visit.principal, settings=after)
    messages.success(visit.request, _("Saved. It is in force for the facts that are there, too."))
    return visit.url("retention")


def _in_words(visit: Visit, form: RuleForm, one: RetentionSettings) -> str:
    if not form.cleaned_data["type"]:
        return window_words(one.keep_days, one.delete_after_days)
    default = default_windows(visit.principal.tenant_id)
    return type_words((one.keep_days, one.delete_after_days), default)


def _preview_page(visit: Visit, form: RuleForm, *, has_changed: bool = False) -> HttpResponse:
    before, after, simulation = _looked_at(visit, form)
    given = visit.request.GET.urlencode()
    context = {
        "type": form.cleaned_data["type"],
        "before": _in_words(visit, form, before),
        "after": _in_words(visit, form, after),
        "grace": (before.grace_days, after.grace_days)
        if before.grace_days != after.grace_days
        else None,
        "is_same": _is_same(before, after),
        "simulation": simulation,
        "newly_due": max(0, simulation.due - simulation.due_now),
        "seal": seal_of(PURPOSE, _shown(visit, form, before, after, simulation)),
        "once": new_key(),
        "has_changed": has_changed,
        "back": f"{visit.url('retention-rule')}?{given}",
    }
    status = 409 if has_changed else 200
    return render_page(visit.request, "govern/retention_preview.html", context, status=status)
