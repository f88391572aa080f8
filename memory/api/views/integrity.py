"""Checkpoints and proofs over HTTP. The texts in the answers are the standard formats, byte for byte."""

import json
import re
import tempfile
from base64 import b64decode, b64encode
from contextlib import ExitStack
from typing import IO, Any, Final

from django.http import FileResponse, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.http import content_disposition_header

from memory.actions.export_evidence import (
    EXPORTED_AT_MOST,
    EXPORTERS,
    Exported,
    export_evidence,
)
from memory.api import parameters
from memory.api.json_text import dumps
from memory.api.operation import Answer, ApiView, Call, operation
from memory.api.pagination import make_cursor, page, read_cursor
from memory.api.schemas_log import HASH, page_of
from memory.api.shapes import INSTANT, TEXT, always
from memory.errors import CheckpointNotFound
from memory.integrity.checkpoints import StoredCheckpoint
from memory.integrity.notes import verifier_key
from memory.integrity.signing import signer
from memory.queries.seal_proofs import checkpoint, checkpoints, consistency, run_proof
from memory.queries.timestamps import timestamps_of
from memory.queries.witnesses import witnesses_of

_ZIP: Final = "application/zip"
_ANSWERED_WHOLE_BYTES: Final = 16 << 20
_KEPT_BYTES: Final = 4 << 20
_SIZE = re.compile("[1-9][0-9]{0,14}", re.ASCII)
_INTEGER = {"type": "integer", "minimum": 0}

WITNESS: dict[str, Any] = {
    "type": "object",
    "required": ["name", "state"],
    "properties": {
        "name": TEXT,
        "state": {"enum": ["cosigned", "covered", "waiting", "failing"]},
        "verifierKey": TEXT,
        "cosignedAt": INSTANT,
        "failure": TEXT,
        "failedAt": INSTANT,
        "retryAt": INSTANT,
    },
}
TIMESTAMP: dict[str, Any] = {
    "type": "object",
    "required": ["name", "state"],
    "properties": {
        "name": TEXT,
        "state": {"enum": ["stamped", "covered", "waiting", "failing"]},
        "stampedAt": INSTANT,
        "stamp": TEXT,
        "failure": TEXT,
        "failedAt": INSTANT,
        "retryAt": INSTANT,
    },
}
CHECKPOINT: dict[str, Any] = {
    "type": "object",
    "required": ["size", "origin", "rootHash", "signedAt", "note"],
    "properties": {
        "size": _INTEGER,
        "origin": TEXT,
        "rootHash": HASH,
        "signedAt": INSTANT,
        "anchoredAt": INSTANT,
        "note": TEXT,
        "verifierKeys": {"type": "array", "items": TEXT},
        "witnesses": {"type": "array", "items": WITNESS},
        "timestamps": {"type": "array", "items": TIMESTAMP},
    },
}
RUN_PROOF: dict[str, Any] = {
    "type": "object",
    "required": ["runId", "sequence", "entryHash", "leafIndex", "leaf", "checkpoint", "proof"],
    "properties": {
        "runId": TEXT,
        "sequence": _INTEGER,
        "entryHash": HASH,
        "leafIndex": _INTEGER,
        "leaf": TEXT,
        "checkpoint": {"type": "object"},
        "proof": TEXT,
    },
}
CONSISTENCY: dict[str, Any] = {
    "type": "object",
    "required": ["from", "to", "hashes", "proof"],
    "properties": {
        "from": CHECKPOINT,
        "to": CHECKPOINT,
        "hashes": {"type": "array", "items": HASH},
        "proof": TEXT,
    },
}


def _size(text: str) -> int:
    """A tree size from the path. Raises CheckpointNotFound for anything else."""
    if not _SIZE.fullmatch(text):
        raise CheckpointNotFound
    return int(text)


def _wire(row: StoredCheckpoint) -> dict[str, Any]:
    return {**row.as_wire(), "note": row.cosigned_note}


class Checkpoints(ApiView):
    @operation(
        id="memory.listCheckpoints",
        summary="Signed heads of the tenant's log of seals, the newest first",
        ability="read",
        query=(parameters.LIMIT, parameters.CURSOR),
        answers={200: page_of(CHECKPOINT)},
        errors=("bad-input", "unknown-field"),
        tag="Integrity",
    )
    def get(self, call: Call) -> Answer:
        limit = call.query["limit"]
        position = read_cursor(call.principal, "listCheckpoints", {}, call.query["cursor"])
        rows = checkpoints(
            call.principal, before=position[0] if position else None, limit=limit + 1
        )
        body = page(
            rows,
            limit,
            render=_wire,
            next_cursor=lambda last: make_cursor(
                call.principal, "listCheckpoints", {}, [last.size]
            ),
        )
        return Answer(200, body)


class OneCheckpoint(ApiView):
    @operation(
        id="memory.getCheckpoint",
        summary="One signed head, by its size, with the public keys that may have signed it",
        description=(
            "`note` is a C2SP tlog-checkpoint, with the cosignatures of its witnesses; `verifierKeys` are in the text form of "
            "signed notes. `witnesses` says of each chosen witness whether it cosigned this head (`cosigned`) or a later one "
            "that goes on from it (`covered`), is yet to answer (`waiting`), or why it does not (`failing`). "
            "`timestamps` says the same of each time stamp authority (RFC 3161); `stamp` is its TimeStampResp in base64, over "
            "the note without its witnesses' lines."
        ),
        ability="read",
        answers={200: CHECKPOINT},
        errors=("checkpoint-not-found",),
        tag="Integrity",
    )
    def get(self, call: Call) -> Answer:
        row = checkpoint(call.principal, _size(call.path["size"]))
        keys = [verifier_key(row.origin, key) for key in signer().public_keys]
        body = {**_wire(row), "verifierKeys": keys}
        witnesses = witnesses_of(call.principal, row)
        if witnesses:
            body["witnesses"] = witnesses
        timestamps = timestamps_of(call.principal, row)
        if timestamps:
            body["timestamps"] = timestamps
        return Answer(200, body)


class Consistency(ApiView):
    @operation(
        id="memory.proveConsistency",
        summary="Prove that a later checkpoint's log goes on from an earlier one's",
        description="`proof` is what a C2SP witness is asked with: the old size, hashes, the later checkpoint.",
        ability="read",
        answers={200: CONSISTENCY},
        errors=("bad-input", "checkpoint-not-found", "log-damaged"),
        tag="Integrity",
    )
    def get(self, call: Call) -> Answer:
        earlier, later = _size(call.path["earlier"]), _size(call.path["later"])
        return Answer(200, consistency(call.principal, earlier, later))


class RunProofView(ApiView):
    @operation(
        id="memory.proveRun",
        summary="Prove that a run, or one entry of it, is under a signed checkpoint",
        description=(
            "Without `sequence`: the newest sealed entry of the run. `proof` is a C2SP tlog-proof, whole by itself."
        ),
        ability="read",
        query=(parameters.integer("sequence", "The entry to prove.", least=0, most=2**53 - 1),),
        answers={200: RUN_PROOF},
        errors=("bad-input", "unknown-field", "log-not-found", "run-not-sealed", "log-damaged"),
        tag="Integrity",
    )
    def get(self, call: Call) -> Answer:
        proof = run_proof(call.principal, call.path["run_id"], sequence=call.query["sequence"])
        return Answer(200, proof.as_wire())


def _whole(bundle: bytes, name: str) -> HttpResponse:
    answer = HttpResponse(bundle, content_type=_ZIP)
    answer["Content-Disposition"] = content_disposition_header(True, name) or "attachment"
    return answer


class RunExport(ApiView):
    exported: tuple[IO[bytes], Exported] | None = None
    """The bundle, written, and what it is; a small one is answered whole, a larger one as a stream of its file."""

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        response = super().dispatch(request, *args, **kwargs)
        if response.status_code != 200:
            return response
        answer: HttpResponseBase
        if self.exported is None:
            kept = json.loads(response.content)
            answer = _whole(b64decode(kept["bundle"]), kept["name"])
            answer["Idempotency-Replayed"] = "true"
            sha256 = kept["sha256"]
        else:
            file, exported = self.exported
            sha256, name = exported.sha256, exported.file_name
            file.seek(0)
            if exported.size_bytes <= _ANSWERED_WHOLE_BYTES:
                with file:
                    answer = _whole(file.read(), name)
            else:
                answer = FileResponse(file, as_attachment=True, filename=name, content_type=_ZIP)
        answer["Kindmem-Sha256"] = sha256
        answer["Cache-Control"] = "no-store"
        answer["X-Content-Type-Options"] = "nosniff"
        return answer

    @operation(
        id="memory.exportRun",
        summary="Export a run as a signed evidence bundle",
        description=(
            "A ZIP with the entries in canonical JSON, seals, proofs, the signed checkpoint and a checker that runs offline. "
            "For admins and auditors; it is logged as a reveal of the run. A bundle of more than 4 MiB is not kept for a retry: "
            "that is 409 `idempotency-key-replay-withheld`."
        ),
        ability="read",
        outside=True,
        changes=True,
        roles=EXPORTERS,
        about="run:{run_id}",
        matters=always,
        answers={200: {"type": "string", "format": "binary"}},
        media=_ZIP,
        errors=(
            "bad-input",
            "unknown-field",
            "log-not-found",
            "permission-denied",
            "export-too-large",
        ),
        tag="Integrity",
    )
    def post(self, call: Call) -> Answer:
        with ExitStack() as until_failed:
            file = until_failed.enter_context(tempfile.TemporaryFile())
            exported = export_evidence(
                principal=call.principal,
                run_id=call.path["run_id"],
                target=file,
                most_entries=EXPORTED_AT_MOST,
            )
            until_failed.pop_all()  # the answer closes it, after it was sent
        self.exported = file, exported
        return Answer(200, {}, keeps=lambda: _kept(file, exported))


def _kept(file: IO[bytes], exported: Exported) -> str | None:
    """The bundle as it is kept for a retry; a large one is given once."""
    if exported.size_bytes > _KEPT_BYTES:
        return None
    file.seek(0)
    bundle = b64encode(file.read()).decode()
    return dumps({"name": exported.file_name, "sha256": exported.sha256, "bundle": bundle})
