"""The caller, as the server sees them."""

from django.conf import settings

from memory.api.operation import Answer, ApiView, Call, operation
from memory.api.shapes import TEXT
from memory.quotas import quota_with_use

ME = {
    "type": "object",
    "required": ["tenant", "role", "writer", "grants", "abilities", "limits"],
    "properties": {
        "tenant": {
            "type": "object",
            "properties": {"id": TEXT, "timeZone": TEXT, "searchLanguage": TEXT},
        },
        "role": TEXT,
        "writer": TEXT,
        "subject": TEXT,
        "grants": {"type": "object"},
        "abilities": {"type": "array", "items": TEXT},
        "limits": {"type": "object"},
    },
}


class Me(ApiView):
    @operation(
        id="memory.me",
        summary="Who the caller is",
        description=(
            "Tenant, role, grants, abilities and limits of the caller. A key with a quota reads in `limits.quota` what it "
            "may write in a window, and what it used."
        ),
        answers={200: ME},
        tag="Caller",
    )
    def get(self, call: Call) -> Answer:
        principal = call.principal
        has = principal.containers
        quota = quota_with_use(principal)
        body = {
            "tenant": {
                "id": principal.tenant_slug,
                "timeZone": principal.time_zone,
                "searchLanguage": principal.search_language,
            },
            "role": principal.role,
            "writer": principal.writer,
            "grants": {
                "all": has.everything,
                "projects": sorted(has.projects),
                "orgs": sorted(has.orgs),
                "users": sorted(has.users),
                "participants": sorted(has.participants),
                "threads": sorted(has.threads),
                "onBehalfOf": sorted(has.on_behalf_of),
            },
            "abilities": sorted(principal.abilities),
            "limits": {
                "bodyBytes": settings.KINDMEM_BODY_MAX_BYTES,
                "batchBodyBytes": settings.KINDMEM_BATCH_BODY_MAX_BYTES,
                "contentBytes": settings.KINDMEM_CONTENT_MAX_BYTES,
                "batchEntries": 1000,
                "pageSize": 200,
                **({} if quota is None else {"quota": quota}),
            },
        }
        if principal.subject is not None:
            body["subject"] = principal.subject
        return Answer(200, body)
