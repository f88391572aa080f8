"""The project app: what runs the product (commands, health, the embedded database)."""

from django.apps import AppConfig


class KindmemConfig(AppConfig):
    name = "kindmem"
    verbose_name = "kindmem"
