"""Makes the demo tenant: people, keys, a handful of agent runs and what was remembered from them.

All of it is one transaction, so a start that is cut short leaves nothing half-made. Passwords and tokens are random, returned
once and kept nowhere. The runs and facts are of our own making, in the shape in which `import_runs` takes them.
"""

import json
import secrets
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from django.db import connection, transaction
from django.utils.dateparse import parse_datetime

from kindmem.demo.memories import act_on
from memory.access import ABILITIES, Principal, system_principal
from memory.actions.create_api_key import create_api_key
from memory.actions.create_member import create_member
from memory.actions.create_tenant import create_tenant
from memory.actions.import_run import import_run
from memory.actions.supersede_fact import supersede_fact
from memory.actions.verify_fact import verify_fact
from memory.actions.write_fact import write_fact
from memory.api.authentication import principal_of_member, principal_of_token
from memory.errors import NotFound
from memory.fact_shape import FactChange, FactDraft, Retention, Source, Subject
from memory.importers.openai_runs import run_of_transcript
from memory.tenancy import tenant_context, tenant_id_of

SLUG: Final = "demo"
NAME: Final = "Larkfield Design (demo)"
PROJECTS: Final = ("expenses", "travel")
PERSON: Final = "mara_lindqvist_204"
DOMAIN: Final = "larkfield.example"
MEMBERS: Final = (
    ("owner", f"owner@{DOMAIN}", None),
    ("admin", f"admin@{DOMAIN}", None),
    ("admin", f"second.admin@{DOMAIN}", None),
    ("auditor", f"auditor@{DOMAIN}", None),
    ("person", f"mara.lindqvist@{DOMAIN}", PERSON),
)
"""(role, e-mail, subject). Two admins, since what one asks for another approves."""

_FOLDER = Path(__file__).parent
_KEY_DAYS = 366
# On a busy machine the vectors of all facts may take longer than a request's transaction may.
_TAKE_TIME = (
    "SELECT set_config('transaction_timeout', '10min', true) "
    "WHERE current_setting('server_version_num')::int >= 170000"
)


@dataclass(frozen=True, slots=True)
class SignIn:
    role: str
    email: str
    password: str


@dataclass(frozen=True, slots=True)
class Demo:
    """`app_token` has the whole tenant; `agent_token` has PROJECTS and PERSON, who takes part, as a model-driven agent would."""

    sign_ins: tuple[SignIn, ...]
    app_token: str
    agent_token: str


def seed() -> Demo | None:
    """Make the demo tenant; None when there is one already. Raises BadInput when an account of MEMBERS exists elsewhere."""
    try:
        tenant_id_of(SLUG)
    except NotFound:
        pass
    else:
        return None
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(_TAKE_TIME)
        tenant_id = create_tenant(slug=SLUG, name=NAME, time_zone="Europe/Amsterdam")
        with tenant_context(tenant_id):
            return _fill(system_principal(tenant_id, SLUG))


def _fill(operator: Principal) -> Demo:
    sign_ins = tuple(_sign_in(operator, *member) for member in MEMBERS)
    app_token = create_api_key(
        principal=operator,
        name="demo-app",
        role="app",
        everything=True,
        abilities=ABILITIES,
        expires_days=_KEY_DAYS,
    ).token
    agent_token = create_api_key(
        principal=operator,
        name="desk-agent",
        role="agent",
        projects=PROJECTS,
        users=(PERSON,),
        participants=(PERSON,),
        expires_days=_KEY_DAYS,
    ).token
    by = {"app": principal_of_token(app_token), "agent": principal_of_token(agent_token)}
    for transcript in _read("runs.json"):
        scope = _scope(transcript["project"], takes_part=PERSON in str(transcript["traj"]))
        run = run_of_transcript(transcript, run_id=transcript["task_id"], scope=scope)
        import_run(principal=by["app"], run=run)
    checker = principal_of_member(_user_id(operator, "admin"), SLUG)
    for said in _read("facts.json"):
        _write(by[said["by"]], checker, said)
    by["person"] = principal_of_member(_user_id(operator, "person"), SLUG)
    for said in _read("records.json"):
        act_on(by, said)
    return Demo(sign_ins, app_token, agent_token)


def _sign_in(operator: Principal, role: str, email: str, subject: str | None) -> SignIn:
    password = secrets.token_urlsafe(12)
    create_member(principal=operator, email=email, role=role, subject=subject, password=password)
    return SignIn(role, email, password)


def _user_id(operator: Principal, role: str) -> int:
    email, subject = next((email, subject) for known, email, subject in MEMBERS if known == role)
    return create_member(principal=operator, email=email, role=role, subject=subject).user_id


def _read(name: str) -> list[dict[str, Any]]:
    read: list[dict[str, Any]] = json.loads((_FOLDER / name).read_text())
    return read


def _write(writer: Principal, checker: Principal, said: dict[str, Any]) -> None:
    causes = tuple(said["causes"])
    if "changes" in said:
        fact_id = said["changes"]
        change = FactChange(content=said["content"], causes=causes)
        supersede_fact(principal=writer, fact_id=fact_id, change=change)
    else:
        fact_id = said["id"]
        write_fact(principal=writer, draft=_draft(said, causes))
    if said.get("isVerified"):
        verify_fact(principal=checker, fact_id=fact_id)


def _draft(said: dict[str, Any], causes: tuple[str, ...]) -> FactDraft:
    source = said.get("source")
    return FactDraft(
        id=said["id"],
        type=said["type"],
        scope=_scope(said["project"], takes_part=said.get("subject") == PERSON),
        content=said["content"],
        causes=causes,
        subjects=(Subject("external", said["subject"]),) if "subject" in said else (),
        valid_until=_instant(said.get("validUntil")),
        retention=Retention(keep_days=said.get("keepDays")),
        source=None
        if source is None
        else Source(
            kind=source["kind"],
            uri=source["uri"],
            ttl_seconds=source["ttlSeconds"],
            strategy="manual",
        ),
    )


def _scope(project: str, *, takes_part: bool) -> dict[str, str]:
    """Of the project; what PERSON takes part in is theirs to read, too."""
    scope = {"tenantId": SLUG, "projectId": project}
    return {**scope, "participantId": PERSON} if takes_part else scope


def _instant(text: str | None) -> datetime | None:
    return None if text is None else parse_datetime(text)
