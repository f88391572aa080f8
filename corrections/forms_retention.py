"""What the pages of retention take: shapes only."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from corrections.forms import ID_MAX
from memory.retention import MOST_DAYS


def _days(label: Any, help_text: Any) -> forms.IntegerField:
    return forms.IntegerField(
        label=label, required=False, min_value=1, max_value=MOST_DAYS, help_text=help_text
    )


class TypeForm(forms.Form):
    """Which type a rule is about; empty: the workspace's default."""

    use_required_attribute = False
    type = forms.CharField(label=_("Type of facts"), required=False, max_length=ID_MAX)


class RuleForm(TypeForm):
    """One rule, as it would be. `grace_days` is the default's alone."""

    keep_days = _days(
        _("Keep for at least, in days"),
        _(
            "From the first write. Until then nobody can delete it. It is destroyed then, or after the days below if more."
        ),
    )
    delete_after_days = _days(
        _("Destroy after, in days"),
        _(
            "From the first write. Until then it is read, unless somebody deletes it once they may. Not less than it must be "
            "kept. Both empty: no rule of its own, so what is below it decides."
        ),
    )
    grace_days = forms.IntegerField(
        label=_("Days between a delete and the sweep that destroys it"),
        required=False,
        min_value=0,
        max_value=MOST_DAYS,
    )

    def __init__(self, *args: Any, is_default: bool, **more: Any) -> None:
        super().__init__(*args, **more)
        self.fields["type"].widget = forms.HiddenInput()
        if not is_default:
            del self.fields["grace_days"]

    def clean(self) -> dict[str, Any]:
        given = super().clean() or {}
        keep, delete = given.get("keep_days"), given.get("delete_after_days")
        if keep is not None and delete is not None and delete < keep:
            self.add_error(
                "delete_after_days", _("It can't be destroyed before it need not be kept.")
            )
        return given
