"""Texts become vectors: the built-in model, an OpenAI-compatible endpoint, or none."""
