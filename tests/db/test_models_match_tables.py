"""Tables come from SQL and models describe them: column by column, the two say the same."""

from typing import Any

import pytest
from django.apps import apps
from django.db import connection, models

from tests.db.test_catalog import tenant_tables

pytestmark = pytest.mark.django_db

_OURS = [
    model
    for label in ("memory", "corrections", "kindmem")
    for model in apps.get_app_config(label).get_models()
]
_TYPES: dict[Any, set[str]] = {
    models.UUIDField: {"uuid"},
    models.TextField: {"text"},
    models.CharField: {"text", "character varying"},
    models.BooleanField: {"boolean"},
    models.SmallIntegerField: {"smallint"},
    models.IntegerField: {"integer"},
    models.BigIntegerField: {"bigint"},
    models.BinaryField: {"bytea"},
    models.DateField: {"date"},
    models.DateTimeField: {"timestamp with time zone"},
    models.JSONField: {"jsonb"},
    models.FloatField: {"double precision"},
}

_WITHOUT_MODEL = {
    "page_form": "one statement of the pages writes it",
    "page_link": "one statement of the pages writes it",
    "verification_result": "one statement of the pages writes it",
}


def _columns() -> dict[str, dict[str, tuple[str, bool]]]:
    """Table → column → its type and whether it may be null."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT table_name, column_name, data_type, is_nullable = 'YES' "
            "FROM information_schema.columns WHERE table_schema = 'public'"
        )
        found: dict[str, dict[str, tuple[str, bool]]] = {}
        for table, column, kind, is_null in cursor.fetchall():
            found.setdefault(table, {})[column] = (kind, is_null)
    return found


def test_every_model_has_its_table_with_the_same_columns() -> None:
    tables = _columns()
    for model in _OURS:
        columns = {field.column for field in model._meta.concrete_fields}
        assert columns == set(tables[model._meta.db_table]), model


def test_a_column_may_be_null_where_its_field_may() -> None:
    tables = _columns()
    wrong = [
        f"{model._meta.db_table}.{field.column}"
        for model in _OURS
        for field in model._meta.concrete_fields
        if not isinstance(field, models.GeneratedField)
        and field.null != tables[model._meta.db_table][field.column][1]
    ]
    assert wrong == []


def test_a_column_has_the_type_of_its_field() -> None:
    tables = _columns()
    wrong = []
    for model in _OURS:
        for field in model._meta.concrete_fields:
            kind = tables[model._meta.db_table][field.column][0]
            allowed = _TYPES.get(type(field))
            if allowed is not None and kind not in allowed:
                wrong.append((f"{model._meta.db_table}.{field.column}", kind))
    assert wrong == []


def test_every_table_of_ours_has_a_model() -> None:
    assert tenant_tables() - {model._meta.db_table for model in _OURS} == set(_WITHOUT_MODEL)
