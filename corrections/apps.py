"""The human side: named routes, pages, and what only people do."""

from django.apps import AppConfig


class CorrectionsConfig(AppConfig):
    name = "corrections"
    verbose_name = "Corrections"
