"""The project app: what runs the product (commands, health, the embedded database)."""

from django.apps import AppConfig
from django.conf import settings


class KindmemConfig(AppConfig):
    name = "kindmem"
    verbose_name = "kindmem"

    def ready(self) -> None:
        """Refuse to start on a setting that would only fail later, in the worker. Raises ValueError."""
        if settings.KINDMEM_WITNESSES:
            from memory.integrity.witnesses import chosen_witnesses

            chosen_witnesses()
        if settings.KINDMEM_TIMESTAMPS:
            from memory.integrity.timestamps import chosen_authorities

            chosen_authorities()
