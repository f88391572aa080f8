"""Keyword search over records: the words of what is served, and which of a question's words must be there.

A record is found when it holds every word asked for; a joined one (`2024-05-20`, an e-mail) by its parts. What ends
loses its words in the same transaction.
"""

import json
import re
from collections.abc import Sequence
from uuid import UUID

from django.db import connection

from memory.embeddings.text import text_of
from memory.records.record import Record
from memory.search.analysis import analyse, analyse_query
from memory.search.index import index_language

_JOINED = re.compile(r"[\W_]")


def words_of_record(key: str, value_text: str | None, language: str) -> list[str]:
    """The distinct lexemes of a key and a value."""
    value = "" if value_text is None else text_of(json.loads(value_text))
    text = f"{key} {key.replace('.', ' ').replace('_', ' ')}\n{value}"
    return list(analyse(text, index_language(language)).frequencies)


def words_of_question(question: str, language: str) -> list[str]:
    """The lexemes that a record must hold, all of them; none when the question has no words."""
    lexemes = analyse_query(question, index_language(language))
    return [one for one in lexemes if not _JOINED.search(one)] or lexemes


def index_record(tenant_id: UUID, record: Record, language: str) -> None:
    """Make a record findable that is served again."""
    lexemes = words_of_record(record.key, record.value_text, language)
    if lexemes:
        with connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO record_document (tenant_id, record_id, lexemes) "
                "VALUES (%s::uuid, %s::text, %s::text[]) ON CONFLICT ON CONSTRAINT record_document_pkey DO NOTHING",
                [tenant_id, record.id, lexemes],
            )


def remove_words(tenant_id: UUID, record_ids: Sequence[str]) -> None:
    """Take records out of the search."""
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM record_document WHERE tenant_id = %s::uuid AND record_id = ANY(%s::text[])",
            [tenant_id, list(record_ids)],
        )
