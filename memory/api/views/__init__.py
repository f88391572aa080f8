"""One class a URL; each method parses nothing, calls one action or query, and says how the answer looks."""
