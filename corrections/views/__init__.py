"""Pages. A view parses, calls one action or query, and renders; `corrections.visit` decides who is there."""
