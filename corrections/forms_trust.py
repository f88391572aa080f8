"""The forms of the review queue and of quarantines."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from corrections.filters import FilterForm, day
from corrections.forms import ANY, ID_MAX
from corrections.review_words import KINDS, REASONS


class ReviewFilter(FilterForm):
    kind = forms.ChoiceField(
        label=_("What"),
        required=False,
        choices=[ANY, *KINDS.items()],
        widget=forms.Select(attrs={"data-filter": ""}),
    )
    reason = forms.ChoiceField(
        label=_("Why it waits"),
        required=False,
        choices=[ANY, *((code, badge.words) for code, badge in REASONS.items())],
    )
    subject = forms.CharField(label=_("About whom"), required=False, max_length=ID_MAX)
    writer = forms.CharField(
        label=_("Who wrote it"),
        required=False,
        max_length=ID_MAX,
        widget=forms.TextInput(attrs={"placeholder": _("service: and the prefix")}),
    )


class DecisionForm(forms.Form):
    """`expect`: what the reader saw that would end."""

    decision = forms.ChoiceField(choices=[("approve", ""), ("reject", "")])
    expect = forms.CharField(required=False, max_length=ID_MAX, strip=False)


class SelectorForm(forms.Form):
    """What one key or one run wrote, since when."""

    key = forms.ChoiceField(label=_("A key"), required=False)
    run = forms.CharField(
        label=_("or a run"),
        required=False,
        max_length=ID_MAX,
        widget=forms.TextInput(attrs={"placeholder": _("whole run id")}),
    )
    since = day(_("From day"))

    def __init__(self, *args: Any, keys: Sequence[tuple[str, str]], **more: Any) -> None:
        super().__init__(*args, **more)
        field = self.fields["key"]
        if isinstance(field, forms.ChoiceField):
            field.choices = [("", _("Choose a key")), *keys]

    def clean(self) -> dict[str, Any]:
        given = super().clean() or {}
        if bool(given.get("key")) == bool(given.get("run")):
            self.add_error("key", _("Choose a key or name a run, and not both."))
        return given


class QuarantineForm(forms.Form):
    reason = forms.CharField(
        label=_("Why"), max_length=2000, widget=forms.Textarea(attrs={"rows": 2})
    )
