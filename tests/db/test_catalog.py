"""The schema keeps its own rules: read from pg_catalog, so that a new table can't forget them."""

from typing import Any

import pytest
from django.db import connection

GLOBAL_TABLES = {
    "tenant": "is the wall itself: its own id is compared instead of tenant_id",
    "worker_heartbeat": "of the installation: when its workers were last heard of",
    "installation_keys": "of the installation: which keys it was set up with",
    "page_maintenance": "of the installation: when disk pages were cleared of what was deleted",
    "work_failure": "of the installation, as the queue of jobs is: which work failed how often",
    "django_migrations": "of the framework",
    "django_content_type": "of the framework",
    "django_session": "before a tenant is known",
    "auth_user": "people sign in before a tenant is known",
    "auth_group": "of the framework",
    "auth_permission": "of the framework",
    "auth_group_permissions": "of the framework",
    "auth_user_groups": "of the framework",
    "auth_user_user_permissions": "of the framework",
}
GLOBAL_PREFIXES = (
    "account_",
    "mfa_",
    "socialaccount_",
    "usersessions_",
    "procrastinate_",
    "django_admin_",
)
"""Sign-in and the job queue: they work before, or across, tenants."""

DEFINER_FUNCTIONS = {
    "auth_lookup": "finds a key before its tenant is known",
    "tenant_id_of": "finds a tenant by its slug",
    "tenant_ids": "the worker walks all tenants",
    "work_due": "the worker looks in which tenants there is what to do; ids and names of work alone",
    "memberships_of": "a person picks a tenant after signing in",
}
GLOBAL_UNIQUES = {
    "tenant_pkey": "the wall itself",
    "tenant_slug_is_unique": "the wire name of a tenant",
    "api_key_prefix_is_unique": "looked up before the tenant is known",
}


def rows(query: str) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(query)
        return cursor.fetchall()


pytestmark = pytest.mark.django_db


def tenant_tables() -> set[str]:
    found = rows(
        "SELECT c.relname FROM pg_class c WHERE c.relkind IN ('r', 'p') AND c.relnamespace = 'public'::regnamespace"
    )
    names = {row[0] for row in found}
    return {n for n in names if n not in GLOBAL_TABLES and not n.startswith(GLOBAL_PREFIXES)}


def test_every_tenant_table_has_a_tenant_and_forced_row_level_security_with_its_one_policy() -> (
    None
):
    facts = {
        row[0]: row[1:]
        for row in rows("""
            SELECT c.relname, c.relrowsecurity, c.relforcerowsecurity,
                   (SELECT a.attnotnull AND a.atttypid = 'uuid'::regtype FROM pg_attribute a
                    WHERE a.attrelid = c.oid AND a.attname = 'tenant_id'),
                   (SELECT count(*) FROM pg_policy p WHERE p.polrelid = c.oid AND p.polname = 'tenant_isolation'
                      AND p.polqual IS NOT NULL AND p.polwithcheck IS NOT NULL AND p.polpermissive),
                   (SELECT count(*) FROM pg_policy p WHERE p.polrelid = c.oid
                      AND 'kindmem_app'::regrole = ANY (p.polroles))
            FROM pg_class c WHERE c.relkind IN ('r', 'p') AND c.relnamespace = 'public'::regnamespace""")
    }
    broken = {
        name: facts[name] for name in tenant_tables() if facts[name] != (True, True, True, 1, 1)
    }
    assert not broken
    assert facts["tenant"][:2] == (True, True)


def test_every_unique_index_of_a_tenant_table_leads_with_the_tenant() -> None:
    found = rows("""
        SELECT i.indexrelid::regclass::text, t.relname, a.attname FROM pg_index i
        JOIN pg_class t ON t.oid = i.indrelid JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = i.indkey[0]
        WHERE i.indisunique AND t.relnamespace = 'public'::regnamespace""")
    tables = tenant_tables()
    broken = [
        row
        for row in found
        if row[1] in tables and row[2] != "tenant_id" and row[0] not in GLOBAL_UNIQUES
    ]
    assert not broken


def test_every_index_of_a_tenant_table_leads_with_the_tenant() -> None:
    found = rows("""
        SELECT i.indexrelid::regclass::text, t.relname, coalesce(a.attname, '(expression)') FROM pg_index i
        JOIN pg_class t ON t.oid = i.indrelid LEFT JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = i.indkey[0]
        JOIN pg_class x ON x.oid = i.indexrelid JOIN pg_am m ON m.oid = x.relam
        WHERE t.relnamespace = 'public'::regnamespace AND m.amname = 'btree'""")
    allowed = {*GLOBAL_UNIQUES, "member_by_user"}
    tables = tenant_tables()
    broken = [
        row for row in found if row[1] in tables and row[2] != "tenant_id" and row[0] not in allowed
    ]
    assert not broken


def test_foreign_keys_between_tenant_tables_carry_the_tenant_and_take_no_action() -> None:
    found = rows("""
        SELECT k.conname, t.relname, r.relname, k.confdeltype, k.confupdtype, k.condeferrable,
               (SELECT array_agg(a.attname ORDER BY o.n) FROM unnest(k.conkey) WITH ORDINALITY o(num, n)
                JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = o.num)
        FROM pg_constraint k JOIN pg_class t ON t.oid = k.conrelid JOIN pg_class r ON r.oid = k.confrelid
        WHERE k.contype = 'f' AND t.relnamespace = 'public'::regnamespace""")
    tables = tenant_tables()
    broken = [
        row
        for row in found
        if row[1] in tables
        and row[2] in tables
        and (row[6][0] != "tenant_id" or row[3:6] != ("a", "a", False))
    ]
    assert not broken


def test_the_app_role_owns_nothing_and_may_truncate_lock_or_reference_nothing() -> None:
    owned = rows("SELECT relname FROM pg_class WHERE relowner = 'kindmem_app'::regrole")
    granted = rows("""
        SELECT table_name, privilege_type FROM information_schema.role_table_grants
        WHERE grantee = 'kindmem_app' AND privilege_type NOT IN ('SELECT', 'INSERT', 'UPDATE', 'DELETE')""")
    assert not owned
    assert not granted


def test_the_log_is_append_only_by_grant() -> None:
    granted = rows("""
        SELECT privilege_type FROM information_schema.role_table_grants
        WHERE grantee = 'kindmem_app' AND table_name = 'log_entry'""")
    assert {row[0] for row in granted} == {"SELECT", "INSERT"}


def test_the_app_role_may_say_once_which_keys_there_are_and_never_change_it() -> None:
    granted = rows("""
        SELECT privilege_type FROM information_schema.role_table_grants
        WHERE grantee = 'kindmem_app' AND table_name = 'installation_keys'""")
    assert {row[0] for row in granted} == {"SELECT", "INSERT"}


def test_functions_with_their_owners_rights_are_the_listed_ones() -> None:
    found = rows("""
        SELECT p.proname, p.proowner::regrole::text, p.proconfig::text FROM pg_proc p
        WHERE p.prosecdef AND p.pronamespace = 'public'::regnamespace""")
    assert {row[0] for row in found} == set(DEFINER_FUNCTIONS)
    assert {row[1] for row in found} == {"kindmem_search"}
    assert all("search_path" in row[2] for row in found)


def test_what_each_row_of_memory_starts_is_planned_for_a_table_that_is_full() -> None:
    # A session may plan it while the table is empty, and would read all of it for each row from then on.
    assert not rows(
        r"""
        SELECT DISTINCT p.proname FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid
        WHERE NOT t.tgisinternal AND t.tgtype & 1 = 1
          AND p.prosrc ~ '(FROM|JOIN|UPDATE) (fact|fact_revision|memory_record|record_value|record_past)\M'
          AND 'enable_seqscan=off' <> ALL (coalesce(p.proconfig, '{}'))
        """
    )


def test_no_function_claims_to_be_leakproof() -> None:
    assert not rows("""
        SELECT proname FROM pg_proc WHERE proleakproof AND pronamespace = 'public'::regnamespace
        AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.objid = pg_proc.oid AND d.deptype = 'e')""")


def test_views_use_the_rights_of_who_asks() -> None:
    assert not rows("""
        SELECT relname FROM pg_class WHERE relkind IN ('v', 'm') AND relnamespace = 'public'::regnamespace
        AND NOT coalesce(reloptions::text LIKE '%security_invoker=true%', false)""")


def test_nothing_of_a_tenant_is_numbered_by_a_global_sequence() -> None:
    found = rows("""
        SELECT t.relname FROM pg_attrdef d JOIN pg_class t ON t.oid = d.adrelid
        WHERE pg_get_expr(d.adbin, d.adrelid) LIKE '%nextval%'
        UNION SELECT t.relname FROM pg_attribute a JOIN pg_class t ON t.oid = a.attrelid
        WHERE a.attidentity <> '' AND t.relnamespace = 'public'::regnamespace""")
    assert not {row[0] for row in found} & tenant_tables()
