"""`reindex`: bring the index of a tenant's facts to what their types say, vectors included; `--model` changes it first."""

import json
import sys
import time
from typing import Any

from django.core.management.base import CommandParser

from memory.access import Principal
from memory.actions.back_fill_embeddings import back_fill_embeddings
from memory.actions.declare_type import Declaration, declare_type
from memory.actions.reindex_facts import reindex_facts
from memory.errors import BadInput, TypeNotFound
from memory.management.command import OperatorCommand, operator
from memory.queries.fact_types import declared_type
from memory.search.progress import ModelProgress, embedding_progress
from memory.tenancy import tenant_context

_PAUSE_SECONDS = 0.5


class Command(OperatorCommand):
    """Re-index one type's facts, or all."""

    help = (
        "Cut the texts of facts again and make the vectors that are missing. Both models answer until it is done. It may be "
        "stopped anywhere: the worker makes the vectors that are left."
    )

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", help="the tenant")
        parser.add_argument("--type", metavar="T", help="facts of this type; all without it")
        parser.add_argument("--model", metavar="M", help="declare this model for the type first")

    def run(self, options: dict[str, Any]) -> None:
        principal = operator(options["slug"])
        type, model = options["type"], options["model"]
        if model is not None:
            if type is None:
                raise BadInput.at("model", "can only be changed of one type: say which with --type")
            _change_model(principal, type, model)
        done = reindex_facts(
            tenant_id=principal.tenant_id,
            language=principal.search_language,
            type=type,
            progress=lambda facts: self.progress.show(f"{facts} facts cut again", facts=facts),
        )
        models = self._fill_in(principal, type)
        pending = sum(one.pending for one in models)
        said = {
            "tenant": options["slug"],
            **({} if type is None else {"type": type}),
            "facts": done.facts,
            "models": [one.wire() for one in models],
        }
        lines = [f"{options['slug']}: {done.facts} facts looked at."]
        lines += [f"  {one.model}: {one.indexed} vectors{_left(one)}" for one in models]
        self.say(said, "\n".join(lines))
        if pending:
            sys.exit(1)

    def _fill_in(self, principal: Principal, type: str | None) -> list[ModelProgress]:
        """Make vectors until none is left, or those that are left can't be made now."""
        while True:
            made = back_fill_embeddings(tenant_id=principal.tenant_id)
            with tenant_context(principal.tenant_id):
                models = embedding_progress(principal.tenant_id, type)
            pending = [one for one in models if one.pending]
            left = sum(one.pending for one in pending)
            self.progress.show(f"{left} vectors to be made", pending=left)
            if not pending or (not made.stored and all(one.last_failure for one in pending)):
                return models
            if not made.stored:
                # The worker has them in hand.
                time.sleep(_PAUSE_SECONDS)


def _left(one: ModelProgress) -> str:
    why = f" ({one.last_failure})" if one.last_failure else ""
    return f", {one.pending} could not be made now{why}" if one.pending else ""


def _change_model(principal: Principal, type: str, model: str) -> None:
    """Declare the type anew, with another model and nothing else changed."""
    with tenant_context(principal.tenant_id):
        try:
            now = declared_type(principal, type)
        except TypeNotFound:
            declaration = Declaration(embedding_model=model)
        else:
            declaration = Declaration(
                keyword=now.keyword,
                semantic=now.semantic,
                embedding_model=model,
                content_schema=None if now.schema_text is None else json.loads(now.schema_text),
            )
        declare_type(principal=principal, type=type, declaration=declaration)
