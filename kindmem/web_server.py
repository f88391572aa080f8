"""gunicorn's settings: how many requests at once, and how large a request line and headers may be.

Used by `up`, and by anyone who runs gunicorn: `gunicorn --config python:kindmem.web_server`.
Threads, not an event loop: the tenant is a setting of the thread's own transaction.
"""

import logging
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from kindmem.state import keep_later

# Before the application loads: keys of a mistyped state folder must not be made.
keep_later()
wsgi_app = "kindmem.wsgi:application"
bind = os.environ.get("KINDMEM_BIND", "127.0.0.1:8000")
worker_class = "kindmem.web_worker.Worker"
workers = int(os.environ.get("KINDMEM_WEB_WORKERS", "2"))
threads = int(os.environ.get("KINDMEM_WEB_THREADS", "4"))
# Loaded once and forked: a worker that died is replaced in milliseconds, and workers share memory.
# The embedding model is not part of it; the first use in a worker loads it.
preload_app = True

# Seconds. A worker that says nothing for `timeout` is replaced; requests end sooner than that.
timeout = 60
graceful_timeout = 10
keepalive = 5

# Bytes, fields, bytes. The longest sensible request line is a partial scope filter.
limit_request_line = 8190
limit_request_fields = 64
limit_request_field_size = 8190

# No header says where the application hangs or which path was asked for, whoever sends it.
forwarder_headers = ""

# The heartbeat file of each worker, in memory where there is such a place.
worker_tmp_dir = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108 - gunicorn unlinks it
# Where workers keep what /metrics adds up, for as long as this server runs. Read when the library is first imported.
if "gunicorn.app.wsgiapp" in sys.modules and "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = tempfile.mkdtemp(
        prefix="kindmem-metrics-", dir=worker_tmp_dir
    )
control_socket_disable = True
loglevel = os.environ.get("KINDMEM_LOG_LEVEL", "warning").lower()


def on_starting(arbiter: object) -> None:
    """Serve with the keys that the database was set up with, or not at all."""
    from django.conf import settings
    from django.db import DatabaseError, connections

    from memory.installation_keys import OtherKeys, claim_keys

    try:
        claim_keys()
    except OtherKeys as error:
        sys.exit(str(error))
    except DatabaseError as error:
        # It may come back while this serves; keys that nobody wrote down may not be used meanwhile.
        if settings.KINDMEM_STATE.missing:
            sys.exit(f"The database can't be asked whose keys these are: {error}")
    finally:
        connections.close_all()


def post_fork(arbiter: object, worker: object) -> None:
    """Give the new worker database connections of its own, should loading have opened any."""
    from django.db import connections

    connections.close_all()


def post_worker_init(worker: object) -> None:
    """Each worker loads the search model by itself, after it was forked: threads and models don't survive a fork."""
    from memory.search.warm import warm_up

    warm_up()


def worker_exit(arbiter: object, worker: Any) -> None:
    """End the process here, its requests being answered.

    A clean end of Python would first tear down the search model, perhaps while its thread still
    loads it, which aborts the process and takes seconds.
    """
    if worker.booted:
        logging.shutdown()
        os._exit(0)


def child_exit(arbiter: object, worker: Any) -> None:
    """What a worker that ended had counted stays counted."""
    from prometheus_client.multiprocess import mark_process_dead

    if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
        mark_process_dead(worker.pid)


def on_exit(arbiter: object) -> None:
    """Leave no counts behind."""
    if folder := os.environ.get("PROMETHEUS_MULTIPROC_DIR"):
        shutil.rmtree(folder, ignore_errors=True)
