"""The filter of the register of what ended."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from corrections.filters import FilterForm, day, days
from corrections.forms import ANY, ID_MAX
from corrections.register_words import HOW


class RegisterFilter(FilterForm):
    how = forms.ChoiceField(
        label=_("How it ended"),
        required=False,
        choices=[ANY, *((how, badge.words) for how, badge in HOW.items())],
        widget=forms.Select(attrs={"data-filter": ""}),
    )
    what = forms.ChoiceField(
        label=_("Of"),
        required=False,
        choices=[ANY, ("memory", _("Memories")), ("fact", _("Facts"))],
    )
    name = forms.CharField(label=_("About what"), required=False, max_length=ID_MAX)
    subject = forms.CharField(label=_("About whom"), required=False, max_length=ID_MAX)
    since = day(_("From day"))
    until = day(_("To day"))
    act = forms.UUIDField(label=_("In one act"), required=False, widget=forms.HiddenInput)

    def __init__(self, *args: Any, governs: bool, **more: Any) -> None:
        super().__init__(*args, **more)
        if not governs:
            del self.fields["subject"]

    def moments(self) -> dict[str, Any]:
        return days(self)

    def wanted(self) -> dict[str, Any]:
        return {
            name: str(value) if name == "act" else value for name, value in super().wanted().items()
        }
