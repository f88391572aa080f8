"""What the admin's pages take about types and policy sources: shapes only."""

import json
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from corrections.forms import ID_MAX
from memory import admission
from memory.content_schema import MOST_BYTES

_URL_MAX = 2048


class SchemaField(forms.CharField):
    """A JSON Schema as text; None when it is empty. What it says is the action's to check."""

    def __init__(self) -> None:
        super().__init__(
            label=_("Content schema"),
            required=False,
            max_length=MOST_BYTES,
            widget=forms.Textarea(attrs={"rows": 8, "class": "mono", "spellcheck": "false"}),
            help_text=_(
                "JSON Schema 2020-12, without remote references. New content that does not fit is refused. Empty: any content."
            ),
        )

    def clean(self, value: Any) -> Any:
        text = super().clean(value).strip()
        if not text:
            return None
        try:
            given = admission.admit(text.encode(), max_bytes=4 * MOST_BYTES)
        except admission.TooLarge:
            raise forms.ValidationError(_("It is too long.")) from None
        except admission.BadInput:
            raise forms.ValidationError(_("This is not JSON.")) from None
        if not isinstance(given, dict | bool):
            raise forms.ValidationError(_("A schema is an object, or true or false."))
        return given


def schema_shown(schema: Any) -> str:
    """A stored schema, laid out for reading."""
    return json.dumps(schema, indent=2, ensure_ascii=False)


class TypeForm(forms.Form):
    keyword = forms.BooleanField(label=_("Found by keywords"), required=False)
    semantic = forms.BooleanField(label=_("Found by meaning"), required=False)
    embedding_model = forms.ChoiceField(label=_("Model for meaning"), required=False)
    content_schema = SchemaField()

    def __init__(self, *args: Any, models: tuple[str, ...], **more: Any) -> None:
        super().__init__(*args, **more)
        self.fields["embedding_model"].choices = [  # type: ignore[attr-defined]  # a choice field
            ("", _("The default")),
            *((one, one) for one in models),
        ]


class NewTypeForm(TypeForm):
    type = forms.CharField(
        label=_("Type"),
        max_length=ID_MAX,
        help_text=_("As facts name it, such as trip-preference."),
    )
    field_order = ("type",)


class NewSourceForm(forms.Form):
    match = forms.CharField(
        label=_("Pointers that it answers"),
        max_length=_URL_MAX,
        help_text=_("The https address that policies point at, or that theirs lie below."),
    )
    fetch_url = forms.CharField(
        label=_("Where to ask"),
        max_length=_URL_MAX,
        help_text=_("The https address that is asked at recall. Nothing of the context is sent."),
    )
    pointer = forms.CharField(
        label=_("Where the value is in the answer"),
        required=False,
        max_length=_URL_MAX,
        help_text=_("A JSON Pointer, such as /limits/meal. Empty: the whole answer."),
    )


class SourceForm(NewSourceForm):
    enabled = forms.BooleanField(
        label=_("In use"),
        required=False,
        help_text=_("Off: policies that point there have no value until it is on again."),
    )
