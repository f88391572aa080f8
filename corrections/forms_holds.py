"""What the pages of legal holds take: shapes only. Steps that only look are in the address, and so are bounded."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from corrections.filters import FilterForm, day, days
from corrections.forms import ID_MAX
from memory.errors import BadInput
from memory.holds import HoldScope

NAMED_MOST = 50
TEXT_MOST = 2000
STATES = {
    "active": _("In force"),
    "release-requested": _("Release asked for"),
    "released": _("Released"),
}


class HoldsFilter(FilterForm):
    state = forms.ChoiceField(
        label=_("State"),
        required=False,
        choices=[("", _("All")), *STATES.items()],
        widget=forms.Select(attrs={"data-filter": ""}),
    )
    review = forms.ChoiceField(
        label=_("Review"),
        required=False,
        choices=[
            ("", _("Any day")),
            ("due", _("Due now")),
            ("soon", _("Due within 30 days")),
        ],
    )


class MatterForm(forms.Form):
    use_required_attribute = False
    matter = forms.CharField(
        label=_("Matter"),
        max_length=200,
        help_text=_("What the case is called, such as Ann v. Acme."),
    )


def _lines(label: Any, help_text: Any = "") -> forms.CharField:
    return forms.CharField(
        label=label,
        required=False,
        max_length=TEXT_MOST,
        help_text=help_text,
        widget=forms.Textarea(attrs={"rows": 2}),
    )


class ScopeForm(MatterForm):
    """What is held. Ids stand on lines of their own."""

    subjects = _lines(
        _("People, projects, clients or organisations"),
        _("Their ids, one a line: everything about them."),
    )
    types = _lines(_("Types of facts"), _("One a line: only facts of these types."))
    runs = _lines(_("Runs"), _("Run ids, one a line: only what came from these runs."))
    since = day(_("Written from day"))
    until = day(_("Written to day"))
    future = forms.BooleanField(label=_("Also what is written later"), required=False)
    facts = _lines(_("Single facts"), _("Fact ids, one a line, kept whatever else is said here."))
    records = _lines(
        _("Single memories"), _("Memory ids, one a line, kept whatever else is said here.")
    )

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.fields["matter"].widget = forms.HiddenInput()

    def clean(self) -> dict[str, Any]:
        given = super().clean() or {}
        for name in ("subjects", "types", "runs", "facts", "records"):
            given[name] = self._ids(name, given.get(name, ""))
        moments = days(self)
        given["scope"] = HoldScope(
            subject_ids=given["subjects"],
            fact_types=given["types"],
            run_ids=given["runs"],
            written_from=moments["since"],
            written_until=moments["until"],
            fact_ids=given["facts"],
            record_ids=given["records"],
            covers_future=bool(given.get("future")),
        )
        if not self.errors:
            self._check(given["scope"])
        return given

    def _ids(self, name: str, text: str) -> tuple[str, ...]:
        ids = tuple(dict.fromkeys(line.strip() for line in text.splitlines() if line.strip()))
        if len(ids) > NAMED_MOST:
            self.add_error(
                name,
                ngettext_lazy(
                    "At most %(n)d line here; longer lists go by the API.",
                    "At most %(n)d lines here; longer lists go by the API.",
                    NAMED_MOST,
                )
                % {"n": NAMED_MOST},
            )
        if any(len(one) > ID_MAX for one in ids):
            self.add_error(name, _("No id has more than 256 characters."))
        return ids

    def _check(self, scope: HoldScope) -> None:
        try:
            scope.check()
        except BadInput as error:
            where = {"/scope/futureItems": "future", "/scope/until": "until"}
            words = {
                "future": _("What is written later is caught by people, types, runs or days."),
                "until": _("The last day must not come before the first."),
                None: _("Say what is held: at least one of these."),
            }
            for issue in error.issues:
                field = where.get(issue["path"])
                self.add_error(field, words[field])


class PlaceHoldForm(forms.Form):
    reason = forms.CharField(
        label=_("Reason"),
        max_length=2000,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text=_("Why it must be kept. Admins and auditors read it; people it is about do not."),
    )
    review_on = forms.DateField(
        label=_("Look at it again on"),
        widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
    )
    once = forms.CharField(widget=forms.HiddenInput, required=False, max_length=64)


class ReviewForm(forms.Form):
    review_on = forms.DateField(
        label=_("Look at it again on"),
        widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
    )


class ReleaseForm(forms.Form):
    reason = forms.CharField(
        label=_("Why can it be released?"),
        max_length=2000,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text=_("A second admin reads it before they approve; it stays on record."),
    )
    once = forms.CharField(widget=forms.HiddenInput, required=False, max_length=64)
