"""Refreshing cached views: what a handler is, which ones a tenant has, and how they are run in bounded time."""
