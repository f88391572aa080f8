"""What a database's schema is, as digests: tables, constraints, indexes, triggers, functions, policies and rights, by name.

A restored database must have the same as the one that was dumped, also where another version of PostgreSQL serves it: rights and
constraints that only newer ones write down (MAINTAIN, NOT NULL by name) are left out; the columns say which may be null.
"""

import re
from hashlib import sha256
from typing import Any

_SAYS: dict[str, str] = {
    "columns": """
        SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attgenerated,
               coalesce(pg_get_expr(d.adbin, d.adrelid), '')
        FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
        LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
        WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'v') AND a.attnum > 0 AND NOT a.attisdropped""",
    "constraints": """
        SELECT c.relname, k.conname, pg_get_constraintdef(k.oid) FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid
        WHERE c.relnamespace = 'public'::regnamespace AND k.contype <> 'n'""",
    "indexes": "SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'",
    "triggers": """
        SELECT c.relname, t.tgname, pg_get_triggerdef(t.oid), t.tgenabled FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
        WHERE NOT t.tgisinternal AND c.relnamespace = 'public'::regnamespace""",
    "functions": """
        SELECT p.proname, pg_get_function_identity_arguments(p.oid), md5(pg_get_functiondef(p.oid)), r.rolname,
               coalesce((SELECT string_agg(a::text, ',' ORDER BY a::text) FROM unnest(p.proacl) a), '')
        FROM pg_proc p JOIN pg_roles r ON r.oid = p.proowner
        WHERE p.pronamespace = 'public'::regnamespace AND p.prokind IN ('f', 'p')
          AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e')""",
    "policies": """
        SELECT tablename, policyname, permissive, roles::text, cmd, coalesce(qual, ''), coalesce(with_check, '')
        FROM pg_policies WHERE schemaname = 'public'""",
    "tables": """
        SELECT c.relname, c.relkind, c.relrowsecurity, c.relforcerowsecurity, r.rolname,
               coalesce((SELECT string_agg(replace(a::text, 'tm/', 't/'), ',' ORDER BY a::text) FROM unnest(c.relacl) a), '')
        FROM pg_class c JOIN pg_roles r ON r.oid = c.relowner
        WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'S')
          AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = c.oid AND d.deptype = 'e')""",
    "column-rights": """
        SELECT c.relname, a.attname, (SELECT string_agg(x::text, ',' ORDER BY x::text) FROM unnest(a.attacl) x)
        FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
        WHERE c.relnamespace = 'public'::regnamespace AND a.attacl IS NOT NULL""",
}


_WRITTEN_OTHERWISE = re.compile(r"::[a-z ]+(?:\[\])?|[()\s]")
"""Casts and brackets of an index's condition: PostgreSQL itself writes them otherwise once it has read what it wrote."""


def catalog_of(cursor: Any) -> dict[str, list[str]]:
    """Every part of the schema, sorted, by what it is."""
    said = {}
    for name, query in _SAYS.items():
        cursor.execute(query)
        lines = [repr(tuple(row)) for row in cursor.fetchall()]
        if name == "indexes":
            lines = [_WRITTEN_OTHERWISE.sub("", line) for line in lines]
        said[name] = sorted(lines)
    return said


def catalog_digests(cursor: Any) -> dict[str, str]:
    """64 hex digits a part, so that a difference has a name."""
    return {
        part: sha256("\n".join(lines).encode()).hexdigest()
        for part, lines in catalog_of(cursor).items()
    }
