"""Backups: one file with the database and its ledgers, and what makes it an installation again."""
