"""The project app: what runs the product (commands, health, the embedded database)."""

from pathlib import Path

from django.apps import AppConfig
from django.conf import settings


class KindmemConfig(AppConfig):
    name = "kindmem"
    verbose_name = "kindmem"

    def ready(self) -> None:
        """Refuse to start on a setting that would only fail later, in the worker. Raises ValueError."""
        from memory.integrity.signing import chosen_signer

        chosen_signer()
        if settings.KINDMEM_BREACHED_PASSWORDS:
            from corrections.breached_passwords import check_list

            check_list(Path(settings.KINDMEM_BREACHED_PASSWORDS))
        if settings.KINDMEM_WITNESSES:
            from memory.integrity.witnesses import chosen_witnesses

            chosen_witnesses()
        if settings.KINDMEM_TIMESTAMPS:
            from memory.integrity.timestamps import chosen_authorities

            chosen_authorities()
