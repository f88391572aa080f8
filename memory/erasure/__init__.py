"""Erasing a person, a conversation or a fact from every place that this product keeps."""
