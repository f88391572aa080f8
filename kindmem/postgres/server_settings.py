"""Decides the server's settings: durable always, sized for one small machine, silent about content.

What acknowledged writes rest on is given on the command line, which nothing overrides. The rest is
in server.conf, rewritten at each start; an operator's ALTER SYSTEM is read after it and wins.
"""

import os
from collections.abc import Mapping
from pathlib import Path

MEBIBYTE = 1024 * 1024

# Durability (every 2xx is on disk), and no way in but the private socket.
FIXED: Mapping[str, str] = {
    "listen_addresses": "",
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
}


def server_conf(major: int) -> str:
    """The text of server.conf for that major version."""
    memory_bytes = _memory_bytes()
    shared_buffers = min(max(memory_bytes // 8, 128 * MEBIBYTE), 512 * MEBIBYTE)
    settings = {
        "max_connections": "120",
        "shared_buffers": f"{shared_buffers // MEBIBYTE}MB",
        "effective_cache_size": f"{max(memory_bytes // 2, 256 * MEBIBYTE) // MEBIBYTE}MB",
        "work_mem": "8MB",
        "maintenance_work_mem": "128MB",
        "max_wal_size": "1GB",
        "random_page_cost": "1.1",
        "jit": "off",
        "dynamic_shared_memory_type": "posix",
        "timezone": "UTC",
        "log_timezone": "UTC",
        "datestyle": "iso, ymd",
        "default_text_search_config": "pg_catalog.simple",
        "client_encoding": "utf8",
        "unix_socket_permissions": "0700",
        # The log must never hold memory text: no statements, no parameters, and no DETAIL lines,
        # which quote the row that failed.
        "log_statement": "none",
        "log_min_error_statement": "panic",
        "log_error_verbosity": "terse",
        "log_parameter_max_length": "0",
        "log_parameter_max_length_on_error": "0",
        "log_line_prefix": "%m [%p] %u ",
    }
    if major >= 18:
        # Three I/O workers less to keep for a database that mostly fits in memory.
        settings["io_method"] = "sync"
    lines = [f"{name} = '{value}'" for name, value in settings.items()]
    return "\n".join(
        ["# Written by kindmem at each start. To change a setting: ALTER SYSTEM.", *lines, ""]
    )


def _memory_bytes() -> int:
    """What this machine or container may use."""
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = Path("/sys/fs/cgroup/memory.max")
    if limit.is_file() and (text := limit.read_text().strip()).isdigit():
        return min(physical, int(text))
    return physical
