"""Every constraint and trigger of the schema that can refuse has a rule with a name, or a reason why no request meets it.

`UNREACHABLE`: what the name says → why. A new constraint that no line here covers, and that no rule is named for, is red.
"""

import re

import pytest

from memory.errors import CONSTRAINT_ERRORS
from tests.db.test_catalog import rows, tenant_tables

pytestmark = pytest.mark.django_db

UNREACHABLE = {
    r".*_belongs_to_tenant": "the tenant is the caller's own, and tenants are never removed",
    r".*_(?:belongs_to|is_of|of|by)_(?:fact|record|revision|run|hold|checkpoint|quarantine)": (
        "written in the transaction that wrote, or locked, what it names"
    ),
    r"record_hold_keeps_record|checkpoint_covers_leaves|used_word_is_an_entry|member_is_user": (
        "what it names is never removed"
    ),
    r".*_(?:has|have)_(?:length|shape)": "the request's shape says so first",
    r".*_(?:is|are)_(?:known|named|given|positive|not_negative)": "the request's shape says so first",
    r".*_(?:in_range|has_range|starts_at_zero)": "a number that the server counts, or the shape bounds",
    r".*_(?:is|are)_(?:hash|hashes|hashed|theirs|of_text|of_size)": "computed by the server",
    r".*_says_(?:how|when|who|why|when_and_why)": "one statement sets the columns together",
    r"(?!memory_record|correction_route|fact_pkey).*_pkey": (
        "its last column is a new id of the server's, or the statement says ON CONFLICT"
    ),
    r"(?:fact_document_number|page_link_digest|api_key_prefix)_is_unique": "random and long",
    r"tenant_slug_is_unique|member_(?:once_per_tenant|subject_is_one_person|person_has_subject)": (
        "only commands and pages for admins make tenants and members; their actions name it"
    ),
    r"api_key_auditor_only_reads|tenant_.*": "only commands make keys and tenants; their actions say it first",
    r"fact_revision_id_is_unique": "named where facts are written, as the id that is taken",
    r"fact_revision_(?:one_is_current|first_supersedes_nothing|verified_names_who|continues_fact|only_closes)": (
        "revisions follow each other under the head's lock"
    ),
    r"fact_keeps_identity|memory_record_keeps_identity": "no statement changes those columns",
    r"log_entry_has_one_successor|run_head_.*|log_entry_(?:erased_has_no_payload|salt_goes_with_version_2)": (
        "one statement moves the head, under its lock, and writes the entry"
    ),
    r"fact_document_counts_each_lexeme|fact_embedding_has_its_dims|posting_.*|search_row_says_what_its_fact_says": (
        "the index is written by the server alone"
    ),
    r"fact_.*_says_what_its_fact_says|posting_says_what_its_fact_says": (
        "the index is written by the server alone"
    ),
    r"idempotency_key_withheld_has_no_answer|pending_act_decided_keeps_no_body": (
        "one statement sets the columns together"
    ),
    r"memory_record_(?:ended_says_when|tombstone_.*|observations_is_positive)": (
        "one statement sets the columns together"
    ),
    r"correction_route_template_names_the_record": "the action asks first",
    r"record_lineage_names_another|record_supersession_by_another": "the action asks first, as I7",
    r"record_(?:past|value|usage)_.*|sealed_copy_.*|receipt_undone_by_a_receipt": (
        "written by the server alone, after the record's own rules"
    ),
    r"used_word_once": "the statement says ON CONFLICT",
    r"erasure_.*|destroyed_fact_.*": "the eraser and the sweep write these, in order",
    r"webhook_(?:delivery|attempt)_is_of_.*": "the statement locked what it names, or wrote it",
    r"webhook_delivery_once_an_event": "the event's id is new, or the statement says ON CONFLICT",
    r"hold_.*|legal_hold_.*": "the actions on holds ask first",
    r"reindexing_is_of_declared_type": "written in the transaction that declares it",
    r"sweep_.*": "the sweep takes its place by this very index, and says who has it",
    r"verification_job_.*": "the worker writes these, in order; a range without a run is refused before",
    r"witness_standing_.*": "the worker alone writes these, after it asked",
    r"seal_leaf_.*|checkpoint_.*|anchor_.*": "the sealer alone writes these, under its lock",
    r"page_form_is_sent_once|page_link_ends_soon": "the pages' own actions name it",
    r".*_never_(?:truncated|removed)|.*_append_only": "no statement removes or empties these",
}


def refusing() -> set[str]:
    """Names of checks, uniques, keys and of what triggers raise, over the tables of tenants."""
    tables = tenant_tables() | {"tenant"}
    constraints = rows("""
        SELECT k.conname, t.relname FROM pg_constraint k JOIN pg_class t ON t.oid = k.conrelid
        WHERE t.relnamespace = 'public'::regnamespace AND k.contype IN ('c', 'u', 'p', 'f', 'x')
        UNION SELECT x.relname, t.relname FROM pg_index i JOIN pg_class t ON t.oid = i.indrelid
        JOIN pg_class x ON x.oid = i.indexrelid WHERE i.indisunique AND t.relnamespace = 'public'::regnamespace""")
    raised = rows("""
        SELECT DISTINCT (regexp_matches(prosrc, 'CONSTRAINT = ''([a-z_]+)''', 'g'))[1] FROM pg_proc
        WHERE pronamespace = 'public'::regnamespace
        UNION SELECT t.tgname FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid
        WHERE p.prosrc ~ 'CONSTRAINT = TG_NAME' AND NOT t.tgisinternal""")
    return {name for name, table in constraints if table in tables} | {row[0] for row in raised}


def test_every_constraint_has_a_rule_or_a_reason() -> None:
    reasons = [re.compile(pattern) for pattern in UNREACHABLE]
    silent = {
        name
        for name in refusing()
        if name not in CONSTRAINT_ERRORS and not any(rule.fullmatch(name) for rule in reasons)
    }
    assert silent == set()


def test_every_reason_is_of_a_constraint_that_is_there() -> None:
    names = refusing()
    idle = [
        pattern for pattern in UNREACHABLE if not any(re.fullmatch(pattern, name) for name in names)
    ]
    assert idle == []


def test_every_rule_is_of_a_constraint_that_is_there() -> None:
    assert set(CONSTRAINT_ERRORS) - refusing() == set()
