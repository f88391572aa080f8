"""What the pages of webhooks take: shapes only."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from corrections.filters import FilterForm, days
from corrections.forms import ANY
from corrections.forms import day as day_field
from corrections.webhook_words import DELIVERY_STATES, EVENT_WORDS
from memory.webhooks.events import EVENTS


class WebhookForm(forms.Form):
    """An address and what it hears of."""

    name = forms.CharField(
        label=_("Name"), max_length=100, help_text=_("What you call it here, such as Case system.")
    )
    url = forms.CharField(
        label=_("Address"),
        max_length=2048,
        help_text=_(
            "An https address on a public host. It is sent ids and codes, never what is remembered."
        ),
    )
    events = forms.MultipleChoiceField(
        label=_("Hears of"),
        required=False,
        choices=[(name, EVENT_WORDS[name]) for name in EVENTS],
        widget=forms.CheckboxSelectMultiple,
        help_text=_("None marked: everything, also what comes to be told later."),
    )


class ReplayForm(forms.Form):
    """The days whose events are told again."""

    since = day_field(_("From"))
    until = day_field(_("To"))

    def clean(self) -> dict[str, Any]:
        given = super().clean() or {}
        if not given.get("since") or not given.get("until"):
            raise forms.ValidationError(_("Name both days."))
        if given["since"] > given["until"]:
            raise forms.ValidationError(_("The first day must not be after the last."))
        return given

    def moments(self) -> dict[str, Any]:
        """The days as moments in the reader's zone, until the end of the last."""
        return days(self)


class DeliveriesFilter(FilterForm):
    status = forms.ChoiceField(
        label=_("State"),
        required=False,
        choices=[ANY, *((name, badge.words) for name, badge in DELIVERY_STATES.items())],
    )
