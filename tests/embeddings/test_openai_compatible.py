"""The endpoint's answers are checked: order, count, length, numbers, time, refusals."""

import json
import math
import socket
import threading
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest
from django.core.exceptions import ImproperlyConfigured

from memory.embeddings.openai_compatible import TEXTS_PER_REQUEST, OpenAiCompatible
from memory.embeddings.provider import (
    EmbeddingBadAnswer,
    EmbeddingTimeout,
    EmbeddingUnavailable,
)


def _provider(respond, **options):
    return OpenAiCompatible(
        url="https://models.example/v1/",
        name="m",
        transport=httpx.MockTransport(respond),
        **options,
    )


def _answer(vectors, **more):
    rows = [{"index": index, "embedding": vector} for index, vector in enumerate(vectors)]
    return httpx.Response(200, json={"data": rows, **more})


def test_the_request_is_what_the_interface_asks_for():
    asked = []

    def respond(request):
        asked.append((str(request.url), request.headers, json.loads(request.content)))
        return _answer([[3.0, 4.0], [0.0, -2.0]])

    vectors = _provider(respond, key="sk-1").embed(["one", " "])
    url, headers, body = asked[0]
    assert url == "https://models.example/v1/embeddings"
    assert headers["authorization"] == "Bearer sk-1"
    assert body == {"model": "m", "input": ["one", "empty"], "encoding_format": "float"}
    assert vectors == [[0.6, 0.8], [0.0, -1.0]]


def test_without_a_key_no_authorization_is_sent():
    def respond(request):
        assert "authorization" not in request.headers
        return _answer([[1.0]])

    assert _provider(respond).embed(["x"]) == [[1.0]]


def test_dimensions_are_sent_only_when_set_and_then_part_of_the_name():
    def respond(request):
        assert json.loads(request.content)["dimensions"] == 2
        return _answer([[1.0, 0.0]])

    provider = _provider(respond, requested_dimensions=2)
    assert provider.embed(["x"]) == [[1.0, 0.0]]
    assert (provider.model, provider.dimensions) == ("m@2", 2)


def test_vectors_are_put_in_order_by_index():
    def respond(request):
        rows = [{"index": 1, "embedding": [0, 1]}, {"index": 0, "embedding": [1, 0]}]
        return httpx.Response(200, json={"data": rows})

    assert _provider(respond).embed(["a", "b"]) == [[1.0, 0.0], [0.0, 1.0]]


def test_many_texts_go_in_bounded_requests_and_come_back_in_order():
    sizes = []

    def respond(request):
        texts = json.loads(request.content)["input"]
        sizes.append(len(texts))
        angles = [int(text) / 1000 for text in texts]
        return _answer([[math.cos(angle), math.sin(angle)] for angle in angles])

    vectors = _provider(respond).embed([str(n) for n in range(150)])
    assert sizes == [TEXTS_PER_REQUEST, TEXTS_PER_REQUEST, 150 - 2 * TEXTS_PER_REQUEST]
    assert [round(math.atan2(y, x) * 1000) for x, y in vectors] == list(range(150))


def test_a_very_long_text_is_cut():
    def respond(request):
        assert len(json.loads(request.content)["input"][0]) == 8_000
        return _answer([[1.0]])

    _provider(respond).embed(["x" * 100_000])


def test_the_length_is_learnt_from_the_endpoint_when_nothing_says_it():
    calls = []

    def respond(request):
        calls.append(1)
        return _answer([[1.0, 0.0, 0.0]])

    provider = _provider(respond)
    assert (provider.dimensions, provider.dimensions, len(calls)) == (3, 3, 1)


@pytest.mark.parametrize(
    "body",
    [
        b"<html>",
        b"[" * 200_000,
        b"[]",
        b"{}",
        b'{"data": null}',
        b'{"data": [1]}',
        b'{"data": []}',
        b'{"data": [{"embedding": [1.0]}]}',
        b'{"data": [{"index": 1, "embedding": [1.0]}]}',
        b'{"data": [{"index": 0, "embedding": [1.0]}, {"index": 0, "embedding": [1.0]}]}',
        b'{"data": [{"index": 0, "embedding": []}]}',
        b'{"data": [{"index": 0, "embedding": null}]}',
        b'{"data": [{"index": 0, "embedding": "AACAPw=="}]}',
        b'{"data": [{"index": 0, "embedding": [true]}]}',
        b'{"data": [{"index": 0, "embedding": ["1"]}]}',
        b'{"data": [{"index": 0, "embedding": [0.0, 0.0]}]}',
        b'{"data": [{"index": 0, "embedding": [NaN, 1.0]}]}',
        b'{"data": [{"index": 0, "embedding": [1.0, NaN]}]}',
        b'{"data": [{"index": 0, "embedding": [Infinity, 1.0]}]}',
        b'{"data": [{"index": 0, "embedding": [' + b"1," * 5_000 + b"1]}]}",
    ],
    ids=range(20),
)
def test_an_answer_that_is_not_one_vector_a_text_is_a_bad_answer(body):
    provider = _provider(lambda request: httpx.Response(200, content=body))
    with pytest.raises(EmbeddingBadAnswer):
        provider.embed(["x"])


def test_a_number_too_large_for_its_square_still_gives_a_unit_vector():
    provider = _provider(lambda request: _answer([[1e300, 1e300]]))
    assert provider.embed(["x"])[0] == pytest.approx([math.sqrt(0.5)] * 2)


def test_an_integer_beyond_every_float_is_a_bad_answer():
    body = b'{"data": [{"index": 0, "embedding": [1' + b"0" * 400 + b", 1]}]}"
    with pytest.raises(EmbeddingBadAnswer):
        _provider(lambda request: httpx.Response(200, content=body)).embed(["x"])


def test_a_vector_of_another_length_than_before_is_a_bad_answer():
    answers = iter([[[1.0, 0.0]], [[1.0, 0.0, 0.0]]])
    provider = _provider(lambda request: _answer(next(answers)))
    provider.embed(["x"])
    with pytest.raises(EmbeddingBadAnswer, match="3 numbers where 2 are expected"):
        provider.embed(["x"])


@pytest.mark.parametrize("status", [401, 403, 404, 500, 502])
def test_an_endpoint_that_refuses_or_fails_is_unavailable(status):
    with pytest.raises(EmbeddingUnavailable, match=str(status)):
        _provider(lambda request: httpx.Response(status)).embed(["x"])


@pytest.mark.parametrize("status", [204, 301, 400, 413, 422])
def test_any_other_status_is_a_bad_answer(status):
    with pytest.raises(EmbeddingBadAnswer, match=str(status)):
        _provider(
            lambda request: httpx.Response(status, headers={"location": "https://other.example"})
        ).embed(["x"])


@pytest.mark.parametrize("status", [429, 503])
def test_after_too_many_requests_the_endpoint_is_left_alone_as_long_as_it_asked(status):
    calls = []

    def respond(request):
        calls.append(1)
        return httpx.Response(status, headers={"retry-after": "120"})

    provider = _provider(respond)
    with pytest.raises(EmbeddingUnavailable) as first:
        provider.embed(["x"])
    with pytest.raises(EmbeddingUnavailable) as second:
        provider.embed(["x"])
    assert first.value.retry_after_seconds == 120
    assert 100 < second.value.retry_after_seconds <= 120
    assert len(calls) == 1


@pytest.mark.parametrize(
    ("given", "least", "most"),
    [
        (None, 5, 5),
        ("0", 0, 0),
        ("soon", 5, 5),
        ("-3", 5, 5),
        ("99999999", 3600, 3600),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0, 0),
        ("Wed, 21 Oct 2015 07:28:00 -0000", 0, 0),
    ],
)
def test_retry_after_is_a_number_or_a_date_and_bounded(given, least, most):
    headers = {"retry-after": given} if given is not None else {}
    with pytest.raises(EmbeddingUnavailable) as caught:
        _provider(lambda request: httpx.Response(429, headers=headers)).embed(["x"])
    assert least <= caught.value.retry_after_seconds <= most


def test_retry_after_may_be_a_date_to_come():
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=600), usegmt=True)
    with pytest.raises(EmbeddingUnavailable) as caught:
        _provider(lambda request: httpx.Response(429, headers={"retry-after": soon})).embed(["x"])
    assert 500 <= caught.value.retry_after_seconds <= 600


def test_the_errors_carry_neither_text_nor_key():
    def respond(request):
        raise httpx.ConnectError("refused: the secret text", request=request)

    with pytest.raises(EmbeddingUnavailable) as caught:
        _provider(respond, key="sk-1").embed(["the secret text"])
    assert str(caught.value) == "m: could not be reached: ConnectError"


@pytest.mark.parametrize("dimensions", [-1, 4_001])
def test_dimensions_out_of_range_are_refused(dimensions):
    with pytest.raises(ImproperlyConfigured):
        _provider(lambda request: _answer([]), requested_dimensions=dimensions)


def test_no_texts_ask_nothing():
    assert _provider(lambda request: httpx.Response(500)).embed([]) == []


def test_a_real_server_on_loopback_answers_over_plain_http(monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")

    class Endpoint(BaseHTTPRequestHandler):
        def do_POST(self):
            texts = json.loads(self.rfile.read(int(self.headers["content-length"])))["input"]
            rows = [{"index": n, "embedding": [2.0, 0.0]} for n in range(len(texts))]
            body = json.dumps({"data": rows}).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Endpoint) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            provider = OpenAiCompatible(url=f"http://127.0.0.1:{server.server_port}/v1", name="m")
            assert provider.embed(["a", "b"]) == [[1.0, 0.0], [1.0, 0.0]]
            provider.close()
        finally:
            server.shutdown()
            thread.join()


def test_a_server_that_never_answers_is_a_timeout():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        provider = OpenAiCompatible(url=url, name="m")
        with pytest.raises(EmbeddingTimeout):
            provider.embed(["x"], timeout_seconds=0.1)
        provider.close()


def test_a_server_that_is_not_there_is_unavailable():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
    provider = OpenAiCompatible(url=url, name="m")
    with pytest.raises(EmbeddingUnavailable):
        provider.embed(["x"], timeout_seconds=5)
    provider.close()
