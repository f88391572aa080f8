"""Views that the product's figures are compared with, behind the product's own middleware and key look-up.

`plain`: a DRF view without authentication. `noop`: the key look-up and the tenant's transaction, answering `{}`.
`noop_insert`: the same and one durable insert, the ceiling of any write. `floor`: the same and the statements of a recording.
"""

from django.db import connection
from django.urls import include, path
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from memory.api.operation import Answer, ApiView, Call, operation
from memory.api.shapes import Shape
from tests.benchmarks.floors import replay

ANYTHING = Shape({"type": "object", "required": []})


class Plain(APIView):
    authentication_classes = ()
    permission_classes = ()

    def get(self, request: Request) -> Response:
        return Response({})

    def post(self, request: Request) -> Response:
        return Response({})


class Noop(ApiView):
    @operation(id="bench.noop", summary="", answers={200: {}}, tag="bench")
    def get(self, call: Call) -> Answer:
        return Answer(200, {})


class NoopInsert(ApiView):
    @operation(id="bench.insert", summary="", answers={200: {}}, tag="bench", body=ANYTHING)
    def post(self, call: Call) -> Answer:
        with connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO bench_row (tenant_id, body) VALUES (%(t)s::uuid, %(b)s::text)",
                {"t": call.principal.tenant_id, "b": str(call.body)},
            )
        return Answer(200, {})


class Floor(ApiView):
    @operation(id="bench.floor", summary="", answers={200: {}}, tag="bench")
    def post(self, call: Call) -> Answer:
        connection.ensure_connection()
        with connection.connection.cursor() as cursor:
            replay(cursor, call.path["kind"], int(call.path["number"]))
        return Answer(200, {})


urlpatterns = [
    path("bench/plain", Plain.as_view()),
    path("bench/noop", Noop.as_view()),
    path("bench/insert", NoopInsert.as_view()),
    path("bench/floor/<kind>/<number>", Floor.as_view()),
    path("", include("kindmem.urls")),
]
