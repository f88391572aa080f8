"""What the admin's pages take about keys and members: shapes only."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from corrections.filters import FilterForm
from corrections.forms import ANY, ID_MAX
from corrections.navigation import role_name
from corrections.quota_words import WINDOWS, window_words
from memory.access import ABILITIES, DEFAULT_ABILITIES, Quota
from memory.actions.create_api_key import CONTAINERS, MOST_DAYS
from memory.actions.create_api_key import ROLES as KEY_ROLES
from memory.actions.create_member import EMAIL_MAX
from memory.actions.create_member import ROLES as MEMBER_ROLES
from memory.actions.rotate_key import MOST_OVERLAP_HOURS
from memory.queries.api_keys import ApiKeyView

ABILITY_WORDS = {
    "read": _("read: facts, records and log entries of its containers"),
    "write": _("write: facts and records"),
    "append": _("append: entries of the run log"),
    "emit": _("emit: events that end memories"),
    "tenant-wide": _("tenant-wide: write what everybody reads"),
}
KEY_ROLE_WORDS = {
    "agent": _("Agent: driven by a model; what it writes is unverified"),
    "app": _("App: acts for its users; what it does is their word"),
    "auditor": _("Auditor: reads, and writes nothing"),
    "admin": _("Admin: may do nearly everything, also without a person"),
}
MEMBER_ROLE_WORDS = {
    "person": _("Person: their own memory, and nothing else"),
    "auditor": _("Auditor: reads and verifies everything, changes nothing"),
    "admin": _("Admin: keeps keys, members, rules, holds and erasures"),
    "owner": _("Owner: an admin who appoints admins and can close the workspace"),
}
_ID_LINES_MAX = 20_000


class IdLines(forms.CharField):
    """Ids, one a line."""

    def __init__(self, label: Any, help_text: Any = "") -> None:
        super().__init__(
            label=label,
            help_text=help_text,
            required=False,
            max_length=_ID_LINES_MAX,
            widget=forms.Textarea(attrs={"rows": 2}),
        )

    def clean(self, value: Any) -> list[str]:
        text = super().clean(value)
        found = [line.strip() for line in text.splitlines() if line.strip()]
        if any(len(one) > ID_MAX for one in found):
            raise forms.ValidationError(_("An id has at most 256 characters."))
        return found


class KeysFilter(FilterForm):
    status = forms.ChoiceField(
        label=_("State"),
        required=False,
        choices=[("", _("In use")), ("ended", _("Expired or revoked"))],
        widget=forms.Select(attrs={"data-filter": ""}),
    )


class KeyForm(forms.Form):
    name = forms.RegexField(
        r"^[A-Za-z0-9._-]{1,64}$",
        label=_("Name"),
        help_text=_("Which program it is, such as booker. Letters, digits, dots, - and _."),
        error_messages={"invalid": _("At most 64 letters, digits, dots, - and _; no spaces.")},
    )
    role = forms.ChoiceField(label=_("Role"), widget=forms.RadioSelect, initial="agent", choices=[])
    abilities = forms.MultipleChoiceField(
        label=_("May"),
        widget=forms.CheckboxSelectMultiple,
        initial=sorted(DEFAULT_ABILITIES["agent"]),
        choices=[(one, ABILITY_WORDS[one]) for one in ABILITIES],
        help_text=_("An auditor's key only reads."),
    )
    projects = IdLines(
        _("Projects"),
        _("The containers that it reads and writes in. One id a line, in each of these."),
    )
    users = IdLines(_("Users"))
    on_behalf_of = IdLines(
        _("Projects on whose behalf"), _("With every participant and thread of them.")
    )
    orgs = IdLines(_("Organisations"))
    participants = IdLines(_("Participants"))
    threads = IdLines(_("Threads"))
    everything = forms.BooleanField(
        label=_("Everything, whatever container it is in"), required=False
    )
    expires_days = forms.IntegerField(
        label=_("Ends after how many days"), min_value=1, max_value=MOST_DAYS, initial=90
    )
    once = forms.CharField(widget=forms.HiddenInput, required=False, max_length=64)

    def __init__(self, *args: Any, is_owner: bool, **more: Any) -> None:
        super().__init__(*args, **more)
        self.fields["role"].choices = [  # type: ignore[attr-defined]  # a choice field
            (one, KEY_ROLE_WORDS[one]) for one in KEY_ROLES if is_owner or one != "admin"
        ]

    def clean(self) -> dict[str, Any]:
        given = super().clean() or {}
        if given.get("role") == "auditor" and set(given.get("abilities", ())) - {"read"}:
            self.add_error("abilities", _("An auditor's key only reads."))
        return given

    def containers(self) -> dict[str, list[str]]:
        return {kind: self.cleaned_data[kind] for kind in CONTAINERS}


class RotateForm(forms.Form):
    overlap_hours = forms.IntegerField(
        label=_("Hours for which the old token goes on working"),
        min_value=0,
        max_value=MOST_OVERLAP_HOURS,
        initial=24,
        help_text=_("So that the program can change it without a pause. 0: it ends at once."),
    )
    once = forms.CharField(widget=forms.HiddenInput, required=False, max_length=64)


class QuotaForm(forms.Form):
    """What is left empty has no bound."""

    writes = forms.IntegerField(label=_("Writes"), required=False, min_value=1, max_value=2**31 - 1)
    bytes = forms.IntegerField(
        label=_("Bytes of what it sends"), required=False, min_value=1, max_value=2**53 - 1
    )
    subjects = forms.IntegerField(
        label=_("Different people and other subjects written about"),
        required=False,
        min_value=1,
        max_value=2**31 - 1,
    )
    window_seconds = forms.TypedChoiceField(label=_("In each"), coerce=int, choices=[])
    once = forms.CharField(widget=forms.HiddenInput, required=False, max_length=64)

    def __init__(self, *args: Any, key: ApiKeyView, **more: Any) -> None:
        super().__init__(*args, **more)
        offered = sorted({*WINDOWS, key.quota.window_seconds})
        self.fields["window_seconds"].choices = [  # type: ignore[attr-defined]  # a choice field
            (one, window_words(one)) for one in offered
        ]

    def quota(self) -> Quota:
        given = self.cleaned_data
        return Quota(given["writes"], given["bytes"], given["subjects"], given["window_seconds"])


class MembersFilter(FilterForm):
    q = forms.CharField(
        label=_("Address"),
        required=False,
        max_length=EMAIL_MAX,
        widget=forms.TextInput(attrs={"data-filter": "", "type": "search"}),
    )
    role = forms.ChoiceField(
        label=_("Role"),
        required=False,
        choices=lambda: [ANY, *((one, role_name(one)) for one in MEMBER_ROLES)],
    )
    status = forms.ChoiceField(
        label=_("State"), required=False, choices=[("", _("Members now")), ("ended", _("Ended"))]
    )


class RoleForm(forms.Form):
    """Which role, and who of the memory they are."""

    role = forms.ChoiceField(label=_("Role"), widget=forms.RadioSelect, choices=[])
    subject = forms.CharField(
        label=_("Id in the memory"),
        required=False,
        max_length=ID_MAX,
        help_text=_(
            "By which agents know them: a person has one. It opens that person's own pages."
        ),
    )

    def __init__(self, *args: Any, is_owner: bool, **more: Any) -> None:
        super().__init__(*args, **more)
        shown = reversed(MEMBER_ROLES) if is_owner else ("person", "auditor")
        self.fields["role"].choices = [  # type: ignore[attr-defined]  # a choice field
            (one, MEMBER_ROLE_WORDS[one]) for one in shown
        ]

    def clean(self) -> dict[str, Any]:
        given = super().clean() or {}
        if given.get("role") == "person" and not given.get("subject"):
            self.add_error("subject", _("A person needs the id by which agents know them."))
        return given


class NewMemberForm(RoleForm):
    email = forms.EmailField(label=_("E-mail address"), max_length=EMAIL_MAX)
    field_order = ("email", "role", "subject")
