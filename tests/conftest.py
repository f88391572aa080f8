"""What every test stands on: a real PostgreSQL with pgvector, migrations on, the unprivileged app role.

One embedded cluster a test run, shared by all its processes; one database a process, cloned from a migrated template. Tests on
the `db` fixture run in a transaction that is rolled back. Tests on `live_db` commit for real: each makes tenants of its own, and
the tenant wall keeps them apart, so nothing needs cleaning.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

_ROOT = Path(os.environ.get("KINDMEM_TEST_DIR") or tempfile.mkdtemp(prefix="kindmem-test-"))
os.environ.setdefault("KINDMEM_TEST_DIR", str(_ROOT))
os.environ["KINDMEM_DATA_DIR"] = str(_ROOT / "data")
os.environ["KINDMEM_STATE_DIR"] = str(_ROOT / "state")
os.environ["DJANGO_SETTINGS_MODULE"] = "kindmem.settings"
os.environ.setdefault("KINDMEM_EMBEDDINGS", "minilm")
os.environ.pop("DATABASE_URL", None)
_ROOT.chmod(0o755)  # as root the server runs as another user, who must be able to enter

import django  # noqa: E402
import psycopg  # noqa: E402
import pytest  # noqa: E402
from django.conf import settings  # noqa: E402
from django.db import connections  # noqa: E402

from kindmem.postgres.bootstrap import bootstrap  # noqa: E402
from kindmem.postgres.cluster import Cluster  # noqa: E402

django.setup()

from tests.builders import TenantKit, make_tenant  # noqa: E402

TEMPLATE = "kindmem_template"


def test_cluster() -> Cluster:
    major = os.environ.get("KINDMEM_TEST_POSTGRES")
    return Cluster(_ROOT / "data", major=int(major) if major else None)


test_cluster.__test__ = False  # type: ignore[attr-defined]  # a helper, whatever its name


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput") or config.option.collectonly:
        return
    cluster = test_cluster()
    cluster.start()
    bootstrap(cluster.url(), TEMPLATE)


def pytest_unconfigure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput") or config.option.collectonly:
        return
    test_cluster().stop()
    shutil.rmtree(_ROOT, ignore_errors=True)


def _migrate_template(cluster: Cluster) -> None:
    """Bring the template up to date, once a run, whichever process comes first."""
    from django.core.management import call_command

    with psycopg.connect(cluster.url(), autocommit=True) as admin:
        admin.execute("SELECT pg_advisory_lock(815)")
        for alias in ("default", "owner"):
            settings.DATABASES[alias]["NAME"] = TEMPLATE
            connections[alias].settings_dict["NAME"] = TEMPLATE
        call_command("migrate", database="owner", verbosity=0)
        connections.close_all()


@pytest.fixture(scope="session")
def django_db_setup(django_db_blocker: pytest.FixtureRequest, worker_id: str) -> Iterator[None]:
    cluster = test_cluster()
    name = f"kindmem_{worker_id}"
    with django_db_blocker.unblock():  # type: ignore[attr-defined]  # pytest-django's blocker
        _migrate_template(cluster)
        with psycopg.connect(cluster.url(), autocommit=True) as admin:
            admin.execute("SELECT pg_advisory_lock(815)")
            admin.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
            admin.execute(f"CREATE DATABASE {name} TEMPLATE {TEMPLATE} OWNER kindmem_owner")
        for alias in ("default", "owner"):
            settings.DATABASES[alias]["NAME"] = name
            connections[alias].settings_dict["NAME"] = name
        yield
        connections.close_all()


@pytest.fixture
def live_db(django_db_setup: None, django_db_blocker: pytest.FixtureRequest) -> Iterator[None]:
    """Real commits on real connections. Make tenants of your own."""
    with django_db_blocker.unblock():  # type: ignore[attr-defined]  # pytest-django's blocker
        yield
        for connection in connections.all():
            connection.close()


@pytest.fixture
def acme(db: None) -> TenantKit:
    """A tenant inside the test's transaction."""
    return make_tenant("acme")


@pytest.fixture
def live_acme(live_db: None) -> TenantKit:
    """A committed tenant with a slug of its own."""
    return make_tenant()


@pytest.fixture(scope="session")
def superuser_url(django_db_setup: None) -> str:
    """A libpq URL of the superuser on this process's database: what an attacker with full write access has."""
    return test_cluster().url(dbname=settings.DATABASES["default"]["NAME"])


@pytest.fixture(scope="session")
def app_conninfo(django_db_setup: None) -> str:
    return test_cluster().url("kindmem_app", settings.DATABASES["default"]["NAME"])


@pytest.fixture(scope="session")
def owner_conninfo(django_db_setup: None) -> str:
    return test_cluster().url("kindmem_owner", settings.DATABASES["default"]["NAME"])
