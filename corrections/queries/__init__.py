"""Reads that only pages need; bounded, and under the same guard as the API's."""
