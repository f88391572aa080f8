"""Why a figure is short of its target, as far as it was looked into, and what would be next; by how the figure's name begins.

A profile stands behind each: py-spy on the web server for what is Python's, `EXPLAIN (ANALYZE, BUFFERS)` for what is SQL's. A
miss that nobody has looked into yet says so on the page.
"""

_NOT_LOOKED_INTO = "not looked into yet"
REASONS: dict[str, str] = {
    "append / (noop + insert)": (
        "the insert writes one row of a table without keys; an append moves the run's head row, makes the hash in the database, "
        "and writes a row under three unique keys. `floor` shows what Python adds to that. Next: nothing that keeps the chain"
    ),
    "in process: batch of 100 / raw batch": (
        "the raw batch is given its hashes; the product makes two for each entry"
    ),
    "verify in SQL / a stream that re-canonicalises": (
        "of 6.4 µs an entry, 3.9 are the two SHA-256 of PostgreSQL, 300 MB a second each in this build; writing the moment of an "
        "entry is 0.7, and comparing the links 0.6. Next: a build of PostgreSQL whose SHA-256 uses the processor's instructions"
    ),
    "recall / noop": (
        "a recall asks two statements more than the view that does nothing, one of which notes the use. `floor` shows "
        "what Python adds to that"
    ),
    "retrieve by meaning": "the web worker makes the question's vector; the floor is given it",
    "retrieve by both": "the web worker makes the question's vector; the floor is given it",
    "write a fact with words and vector": "the web worker makes the vector; the floor is given it",
}


def reason_of(name: str) -> str:
    return next((why for start, why in REASONS.items() if name.startswith(start)), _NOT_LOOKED_INTO)
