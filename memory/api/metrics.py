"""What is counted of requests, for `/metrics`: by route and status, never by tenant, caller or anything they said."""

from prometheus_client import Counter, Histogram

_REQUESTS = Counter("kindmem_requests", "Requests of the API.", ["method", "route", "status"])
_SECONDS = Histogram(
    "kindmem_request_seconds",
    "How long requests of the API took.",
    ["method", "route"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
)


def observe(method: str, route: str, status: int, seconds: float) -> None:
    """Count one answered request. `route`: the pattern, with no id in it."""
    _REQUESTS.labels(method, route, status).inc()
    _SECONDS.labels(method, route).observe(seconds)
