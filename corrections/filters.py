"""Filters of lists: days in the reader's zone, and what an address asks for that the list does not know."""

from datetime import date, datetime, time, timedelta
from typing import Any

from django import forms
from django.core.validators import MaxValueValidator, MinValueValidator
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from memory.errors import BadInput

# In every zone the next day begins at a moment that there is.
_FIRST_DAY, _LAST_DAY = date(2, 1, 1), date(9998, 12, 31)


def days(form: forms.Form) -> dict[str, Any]:
    """The days `since` and `until` as moments in the reader's zone, until the end of its day."""
    given = form.cleaned_data
    zone = timezone.get_current_timezone()
    since, until = given.get("since"), given.get("until")
    return {
        "since": datetime.combine(since, time.min, zone) if since else None,
        "until": datetime.combine(until + timedelta(days=1), time.min, zone) if until else None,
    }


def day(label: Any) -> forms.DateField:
    return forms.DateField(
        label=label,
        required=False,
        widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
        validators=[
            MinValueValidator(_FIRST_DAY, _("Enter a valid date.")),
            MaxValueValidator(_LAST_DAY, _("Enter a valid date.")),
        ],
    )


class FilterForm(forms.Form):
    """A filter in the address. What does not fit is said with its value, and then nothing is shown: a list that leaves a filter
    out passes for the list that was asked for."""

    use_required_attribute = False

    @property
    def is_bad(self) -> bool:
        """Whether the address asks for something that this list does not know."""
        return not self.is_valid()

    def must_fit(self) -> None:
        """Raises BadInput for a filter that is bad: a file of it would hold what nobody asked for."""
        for name, (_value, why) in self.refused().items():
            raise BadInput.at(name, why)

    def refused(self) -> dict[str, tuple[str, str]]:
        """By field: the value that does not fit, and why."""
        self.is_valid()
        return {
            name: (self.data.get(self.add_prefix(name), ""), str(errors[0]))
            for name, errors in self.errors.items()
            if name in self.fields
        }

    def wanted(self) -> dict[str, Any]:
        """The values that are set and valid."""
        self.is_valid()
        return {name: value for name, value in self.cleaned_data.items() if value not in ("", None)}
