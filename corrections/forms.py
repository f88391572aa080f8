"""What pages take: shapes only. Rules that need reads are the actions'."""

import zoneinfo
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from corrections.actions.set_undo_window import HOURS_MAX
from corrections.facts_shown import STATE_WORDS
from corrections.filters import FilterForm, day, days
from corrections.languages import offered
from corrections.queries.access_log import ACTS
from corrections.remembered import STATE_NAMES, state_badge
from corrections.templatetags.shown import visible
from corrections.words import CHAIN_STATES, KINDS, LOOKING_REASONS
from memory.admission import MAX_INTEGER

ID_MAX = 256
ANY = ("", _("Any"))
ANY_LANGUAGE = ("", _("The usual one here"))


class RunsFilter(FilterForm):
    run = forms.CharField(
        label=_("Run"),
        required=False,
        max_length=ID_MAX,
        widget=forms.TextInput(attrs={"data-filter": "", "placeholder": _("whole run id")}),
    )
    status = forms.ChoiceField(
        label=_("Chain"),
        required=False,
        choices=[ANY, *((state, badge.words) for state, badge in CHAIN_STATES.items())],
    )
    kind = forms.ChoiceField(label=_("Holds a"), required=False, choices=[ANY, *KINDS.items()])
    actor = forms.CharField(label=_("Actor"), required=False, max_length=ID_MAX)
    since = day(_("From day"))
    until = day(_("To day"))

    def moments(self) -> dict[str, Any]:
        return days(self)


class EntriesFilter(FilterForm):
    kind = forms.ChoiceField(
        label=_("Kind"),
        required=False,
        choices=[ANY, *KINDS.items()],
        widget=forms.Select(attrs={"data-filter": ""}),
    )
    actor = forms.CharField(label=_("Actor"), required=False, max_length=ID_MAX)


class AccessFilter(FilterForm):
    act = forms.ChoiceField(
        label=_("What"),
        required=False,
        choices=[ANY, *ACTS.items()],
        widget=forms.Select(attrs={"data-filter": ""}),
    )
    since = day(_("From day"))
    until = day(_("To day"))

    def moments(self) -> dict[str, Any]:
        return days(self)


class ReasonForm(forms.Form):
    """Why somebody looks."""

    reason = forms.ChoiceField(
        label=_("Reason"), choices=[("", _("Choose a reason")), *LOOKING_REASONS.items()]
    )


class DownloadForm(forms.Form):
    format = forms.ChoiceField(
        label=_("File"),
        choices=[
            ("jsonl", _("JSON lines: everything as it is kept, for programs")),
            ("csv", _("CSV: one table, for a spreadsheet")),
        ],
        widget=forms.RadioSelect,
        initial="jsonl",
    )


class ExportForm(ReasonForm):
    format = forms.ChoiceField(
        label=_("File"),
        choices=[
            ("jsonl", _("JSON lines: every entry as the API answers it")),
            ("csv", _("CSV: for a spreadsheet")),
        ],
        widget=forms.RadioSelect,
        initial="jsonl",
    )


class AccessExportForm(ExportForm):
    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.fields["format"].choices = [  # type: ignore[attr-defined]  # a choice field
            ("jsonl", _("JSON lines: every line with all its ids")),
            ("csv", _("CSV: for a spreadsheet")),
        ]


_NO_SUCH_ENTRY = {"max_value": _("No run has an entry of so high a number.")}


class VerifyForm(forms.Form):
    first = forms.IntegerField(
        label=_("From entry"),
        required=False,
        min_value=0,
        max_value=MAX_INTEGER,
        error_messages=_NO_SUCH_ENTRY,
    )
    last = forms.IntegerField(
        label=_("To entry"),
        required=False,
        min_value=0,
        max_value=MAX_INTEGER,
        error_messages=_NO_SUCH_ENTRY,
    )

    def clean(self) -> dict[str, Any]:
        given = super().clean() or {}
        first, last = given.get("first"), given.get("last")
        if first is not None and last is not None and first > last:
            self.add_error("last", _("The last entry must not come before the first."))
        return given


def _zones() -> list[tuple[str, Any]]:
    names = sorted(zoneinfo.available_timezones())
    return [("", _("The workspace's"))] + [
        (name, name.replace("_", " ")) for name in names if "/" in name or name == "UTC"
    ]


class SettingsForm(forms.Form):
    time_zone = forms.ChoiceField(
        label=_("Time zone"), required=False, choices=_zones, help_text=_("Times are shown in it.")
    )
    language = forms.ChoiceField(
        label=_("Language"), required=False, choices=lambda: [ANY_LANGUAGE, *offered()]
    )
    theme = forms.ChoiceField(
        label=_("Colours"),
        required=False,
        choices=[("", _("As the device says")), ("light", _("Light")), ("dark", _("Dark"))],
        widget=forms.RadioSelect,
    )
    shortcuts = forms.BooleanField(label=_("Keyboard shortcuts"), required=False)


class WorkspaceForm(forms.Form):
    undo_hours = forms.IntegerField(
        label=_("Hours in which what a person did can be undone"),
        min_value=0,
        max_value=HOURS_MAX,
        help_text=_("0 to 720; 24 is usual. 0: nothing can be undone."),
    )
    cooling_hours = forms.IntegerField(
        label=_("Hours before a new admin counts for releasing a legal hold"),
        required=False,
        min_value=0,
        max_value=HOURS_MAX,
        help_text=_("0 to 720; 24 is usual. A shorter time counts once the one before it is over."),
    )
    pseudonymise = forms.BooleanField(
        label=_("Name people in the log by a keyed hash, not by their id"),
        required=False,
        help_text=_(
            "For new entries. An erasure can't take ids out of entries that have them: they are part of the hash."
        ),
    )


class MemoryFilter(FilterForm):
    q = forms.CharField(
        label=_("Search"),
        required=False,
        max_length=200,
        widget=forms.TextInput(attrs={"data-filter": "", "type": "search"}),
    )
    state = forms.ChoiceField(
        label=_("State"),
        required=False,
        choices=[("", _("In use")), *((one, state_badge(one).words) for one in STATE_NAMES)],
    )
    source_type = forms.ChoiceField(
        label=_("Where from"),
        required=False,
        choices=[
            ANY,
            ("user_stated", _("I said it")),
            ("user_correction", _("I corrected it")),
            ("agent_inferred", _("An agent guessed it")),
            ("system_record", _("A system")),
        ],
    )
    agent = forms.CharField(label=_("Agent"), required=False, max_length=ID_MAX)
    since = day(_("Since day"))

    def moments(self) -> dict[str, Any]:
        return {"since": days(self)["since"]}


class FactsFilter(FilterForm):
    q = forms.CharField(
        label=_("Search"),
        required=False,
        max_length=200,
        widget=forms.TextInput(attrs={"data-filter": "", "type": "search"}),
    )
    state = forms.ChoiceField(
        label=_("State"), required=False, choices=[("", _("In use")), *STATE_WORDS.items()]
    )
    type = forms.ChoiceField(label=_("Kind"), required=False)
    since = day(_("Since day"))

    def __init__(self, *args: Any, types: list[str], **more: Any) -> None:
        super().__init__(*args, **more)
        self.fields["type"].choices = [ANY, *((one, visible(one)) for one in types)]  # type: ignore[attr-defined]  # a choice field

    def moments(self) -> dict[str, Any]:
        return {"since": days(self)["since"]}


class FactsOfAllFilter(FilterForm):
    """For those who govern: by what a fact is and whose it is, never by what it says."""

    fact = forms.CharField(
        label=_("Fact"),
        required=False,
        max_length=ID_MAX,
        widget=forms.TextInput(attrs={"data-filter": "", "placeholder": _("whole fact id")}),
    )
    type = forms.CharField(label=_("Kind"), required=False, max_length=ID_MAX)
    person = forms.CharField(label=_("Person"), required=False, max_length=ID_MAX)
    project = forms.CharField(label=_("Project"), required=False, max_length=ID_MAX)


class ActForm(forms.Form):
    """What every act on a memory takes: why, if one wants to say, and what was seen."""

    reason = forms.CharField(
        label=_("Why? (you need not say)"),
        required=False,
        max_length=500,
        widget=forms.Textarea(attrs={"rows": 2}),
    )
    expect = forms.CharField(widget=forms.HiddenInput, required=False, max_length=ID_MAX)
    once = forms.CharField(widget=forms.HiddenInput, required=False, max_length=64)


class OutOfDateForm(ActForm):
    since = day(_("Not true since"))
    field_order = ("since", "reason", "expect", "once")


class DisputeForm(ActForm):
    statement = forms.CharField(
        label=_("What is wrong with it?"),
        max_length=2000,
        widget=forms.Textarea(attrs={"rows": 4}),
        help_text=_("Your words stay with it and are shown to whoever decides."),
    )
    field_order = ("statement", "expect", "once")

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        del self.fields["reason"]


class NeverInferForm(ActForm):
    prefix = forms.ChoiceField(  # type: ignore[assignment]  # a field, which the form class takes out
        label=_("Guess no more about"), widget=forms.RadioSelect
    )
    field_order = ("prefix", "reason", "expect", "once")

    def __init__(self, *args: Any, prefixes: list[tuple[str, str]], **more: Any) -> None:
        super().__init__(*args, **more)
        self.fields["prefix"].choices = prefixes  # type: ignore[attr-defined]  # a choice field


class RouteForm(forms.Form):
    """A tenant's own route; built-in ones take only the first two."""

    label = forms.CharField(label=_("What people read"), max_length=256)
    description = forms.CharField(
        label=_("What it does"),
        required=False,
        max_length=2000,
        widget=forms.Textarea(attrs={"rows": 2}),
    )
    url_template = forms.CharField(
        label=_("Page of your own"),
        required=False,
        max_length=2000,
        help_text=_("An https address that holds {record_id}. Empty: the page of kindmem."),
    )
    audience = forms.ChoiceField(
        label=_("Who takes it"),
        choices=[("person", _("The person it is about")), ("admin", _("Admins only"))],
        widget=forms.RadioSelect,
        initial="person",
    )
    may_broaden = forms.BooleanField(
        label=_("May change more than the case at hand"), required=False, initial=True
    )
    needs_evidence = forms.BooleanField(label=_("Needs evidence"), required=False)

    def __init__(self, *args: Any, is_built_in: bool = False, **more: Any) -> None:
        super().__init__(*args, **more)
        if is_built_in:
            for name in ("url_template", "audience", "may_broaden", "needs_evidence"):
                del self.fields[name]


class NewRouteForm(RouteForm):
    name = forms.RegexField(
        r"^[A-Za-z0-9_.:-]{1,64}$",
        label=_("Name"),
        help_text=_("What records call it, such as ask-finance."),
    )
    field_order = ("name", "label")
