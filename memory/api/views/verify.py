"""Verification of a run over HTTP."""

from memory.actions.verify_run import verify_run
from memory.api.operation import Answer, ApiView, Call, operation
from memory.api.schemas_log import REPORT, VERIFY


class RunVerify(ApiView):
    @operation(
        id="memory.verifyRun",
        summary="Verify a run's chain",
        description=(
            "Recomputes every hash. Answers 200 with the report, also for a run that was tampered with; "
            "the verification is itself logged."
        ),
        ability="read",
        body=VERIFY,
        answers={200: REPORT},
        ignores_key=True,
        errors=("bad-input", "unknown-field", "log-not-found", "permission-denied"),
        tag="Run log",
    )
    def post(self, call: Call) -> Answer:
        report = verify_run(
            principal=call.principal,
            run_id=call.path["run_id"],
            first=call.body.get("from"),
            last=call.body.get("to"),
        )
        return Answer(200, report.as_wire())
