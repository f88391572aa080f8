"""The PostgreSQL that comes with kindmem, and what any PostgreSQL must be to carry it.

Nothing here imports Django: the database is found, started and checked before settings load.
"""
