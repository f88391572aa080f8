"""The read guard said twice: the SQL that every query carries, and the plain function; any principal, any scope, one answer."""

from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory.access import (
    Containers,
    Principal,
    check_write,
    holds_containers,
    may_read,
    names_no_container,
    read_guard,
)
from memory.errors import PermissionDenied
from memory.queries.run_log import log_guard

pytestmark = pytest.mark.django_db

# Ids that are near one another: a prefix, wildcards, case, an empty-looking one.
IDS = ("p1", "p10", "P1", "a_b", "axb", "a%", "acme", "acme-corp", " ", "ann")
CONTAINER_KEYS = ("userId", "orgId", "projectId", "threadId", "participantId")
ids = st.sampled_from(IDS)
scopes = st.dictionaries(st.sampled_from([*CONTAINER_KEYS, "sessionId"]), ids)
some = st.frozensets(ids, max_size=4)
containers = st.builds(
    Containers,
    everything=st.sampled_from([False, False, False, True]),
    projects=some,
    orgs=some,
    users=some,
    participants=some,
    threads=some,
    on_behalf_of=some,
)


def principal(
    has: Containers, subject: str | None, abilities: frozenset[str] = frozenset()
) -> Principal:
    return Principal(
        tenant_id=UUID(int=1),
        tenant_slug="acme",
        kind="member" if subject else "key",
        role="person" if subject else "agent",
        id="x",
        name="x",
        abilities=abilities,
        containers=has,
        subject=subject,
    )


def by_sql(guard: tuple[str, dict[str, Any]], scope: dict[str, str]) -> bool:
    rule, parameters = guard
    columns = {
        "userId": "user_id",
        "orgId": "org_id",
        "projectId": "project_id",
        "threadId": "thread_id",
    }
    columns["participantId"] = "participant_id"
    row = ", ".join(f"%({key})s::text AS {column}" for key, column in columns.items())
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT ({rule}) IS TRUE FROM (SELECT {row}, 'run-1'::text AS run_id) f",
            {**{key: scope.get(key) for key in columns}, **parameters},
        )
        return bool(cursor.fetchone()[0])


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(has=containers, scope=scopes, subject=st.none() | ids)
def test_the_sql_guard_and_the_plain_rule_agree(
    has: Containers, scope: dict[str, str], subject: str | None
) -> None:
    who = principal(has, subject)
    assert by_sql(read_guard(who, "f"), scope) == may_read(who, scope)
    assert by_sql(log_guard(who, "f"), scope) == may_read(who, scope)


@given(has=containers, scope=scopes)
def test_who_may_write_a_scope_may_read_it(has: Containers, scope: dict[str, str]) -> None:
    who = principal(has, None)
    if holds_containers(who, scope):
        assert may_read(who, scope)


@given(has=containers, scope=scopes)
def test_writing_needs_every_container_or_the_right_to_write_tenant_wide(
    has: Containers, scope: dict[str, str]
) -> None:
    def may_write(abilities: frozenset[str]) -> bool:
        try:
            check_write(principal(has, None, abilities), scope)
        except PermissionDenied:
            return False
        return True

    assert not may_write(frozenset({"read", "append", "tenant-wide"}))
    wide = names_no_container(scope)
    assert may_write(frozenset({"write"})) == (
        not wide and holds_containers(principal(has, None), scope)
    )
    assert may_write(frozenset({"write", "tenant-wide"})) == (
        wide or holds_containers(principal(has, None), scope)
    )


@pytest.mark.parametrize(
    ("has", "scope", "reads"),
    [
        ({}, {}, True),
        ({}, {"sessionId": "s"}, True),
        ({"projects": ["p1"]}, {"projectId": "p1"}, True),
        ({"projects": ["p1"]}, {"projectId": "p10"}, False),
        ({"projects": ["p1"]}, {"projectId": "p1", "orgId": "o"}, True),
        ({"projects": ["p1"]}, {"orgId": "o"}, False),
        ({"orgs": ["o"]}, {"orgId": "o"}, True),
        ({"projects": ["p1"]}, {"projectId": "p1", "participantId": "ann"}, False),
        (
            {"projects": ["p1"], "participants": ["ann"]},
            {"projectId": "p1", "participantId": "ann"},
            True,
        ),
        (
            {"on_behalf_of": ["p1"]},
            {"projectId": "p1", "participantId": "ann", "threadId": "t"},
            True,
        ),
        ({"on_behalf_of": ["p1"]}, {"projectId": "p2", "participantId": "ann"}, False),
        ({"on_behalf_of": ["p1"]}, {"projectId": "p1", "userId": "ann"}, False),
        ({"everything": True}, {"projectId": "p9", "userId": "ann", "threadId": "t"}, True),
    ],
)
def test_the_rule_by_example(has: dict[str, Any], scope: dict[str, str], reads: bool) -> None:
    granted = {k: v if k == "everything" else frozenset(v) for k, v in has.items()}
    who = principal(Containers(**granted), None)
    assert may_read(who, scope) is reads
    assert by_sql(read_guard(who, "f"), scope) is reads


def test_a_person_reads_what_is_about_them_in_any_project() -> None:
    ann = principal(Containers(users=frozenset({"ann"}), participants=frozenset({"ann"})), "ann")
    for scope, reads in (
        ({"userId": "ann"}, True),
        ({"projectId": "p7", "participantId": "ann"}, True),
        ({"projectId": "p7", "participantId": "ann", "userId": "bob"}, False),
        ({"projectId": "p7"}, False),
        ({"userId": "bob"}, False),
    ):
        assert may_read(ann, scope) is reads
        assert by_sql(read_guard(ann, "f"), scope) is reads
