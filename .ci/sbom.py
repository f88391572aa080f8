"""Writes what the product is made of as CycloneDX 1.6, from the lock file and the vendored files alone.

Run: python .ci/sbom.py [LOCK] > sbom.cdx.json, or `make sbom`. The same lock gives the same bytes: no time is in it, and the
serial number is made from the content. Each archive that may be installed is a hash of its component; what needs it is in the
lock's comments.
"""

import hashlib
import json
import re
import sys
import tomllib
import uuid
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
VENDORED = {
    "static/vendor/htmx-4.0.1.min.js": ("htmx", "4.0.1"),
    "memory/embeddings/bert-uncased-vocab.txt": ("bert-uncased-vocab", "1"),
}
"""Files of others that are kept here, by name and version; the README and the NOTICE beside them say whence."""
_PINNED = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^]]*\])?==(\S+?)(?: ; (.+?))? \\$")
_HASH = re.compile(r"^    --hash=sha256:([0-9a-f]{64})")
_VIA = re.compile(r"^    # +(?:via +)?([A-Za-z0-9._-]+)")


def locked(text: str) -> list[dict[str, Any]]:
    """Each pinned package: name, version, marker, hashes, and what needs it."""
    found: list[dict[str, Any]] = []
    for line in text.splitlines():
        if pinned := _PINNED.match(line):
            name, version, marker = pinned.groups()
            found.append(
                {"name": name, "version": version, "marker": marker, "hashes": [], "via": []}
            )
        elif archive := _HASH.match(line):
            found[-1]["hashes"].append(archive[1])
        elif (via := _VIA.match(line)) and via[1] not in ("via", "-c"):
            found[-1]["via"].append(via[1])
    return found


def purl(name: str, version: str) -> str:
    return f"pkg:pypi/{re.sub(r'[-_.]+', '-', name).lower()}@{version}"


def _component(one: dict[str, Any]) -> dict[str, Any]:
    reference = purl(one["name"], one["version"])
    made = {
        "type": "library",
        "bom-ref": reference,
        "name": one["name"],
        "version": one["version"],
        "purl": reference,
        "hashes": [{"alg": "SHA-256", "content": digest} for digest in sorted(one["hashes"])],
    }
    if one["marker"]:
        made["properties"] = [{"name": "kindmem:where", "value": one["marker"]}]
    return made


def _vendored(path: str, name: str, version: str) -> dict[str, Any]:
    digest = hashlib.sha256((ROOT / path).read_bytes()).hexdigest()
    return {
        "type": "file",
        "bom-ref": f"{name}@{version}",
        "name": name,
        "version": version,
        "hashes": [{"alg": "SHA-256", "content": digest}],
        "properties": [{"name": "kindmem:path", "value": path}],
    }


def bill(text: str) -> dict[str, Any]:
    """The whole document for the text of a lock file."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    packages = locked(text)
    whole = f"{project['name']}@{project['version']}"
    needs: dict[str, set[str]] = {whole: {f"{n}@{v}" for n, v in VENDORED.values()}}
    references: dict[str, list[str]] = {}
    for one in packages:
        reference = purl(one["name"], one["version"])
        references.setdefault(one["name"], []).append(reference)
        needs.setdefault(reference, set())
    for one in packages:
        for parent in one["via"]:
            for reference in references.get(parent, [whole] if parent == project["name"] else []):
                needs[reference].add(purl(one["name"], one["version"]))
    components = [_component(one) for one in packages]
    components += [_vendored(path, *named) for path, named in VENDORED.items()]
    made = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": whole,
                "name": project["name"],
                "version": project["version"],
                "licenses": [{"license": {"id": project["license"]}}],
            }
        },
        "components": sorted(components, key=lambda one: str(one["bom-ref"])),
        "dependencies": [
            {"ref": reference, "dependsOn": sorted(parts)}
            for reference, parts in sorted(needs.items())
        ],
    }
    content = json.dumps(made, sort_keys=True)
    return {"serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, content)}", **made}


def main() -> None:
    lock = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "requirements.lock")
    print(json.dumps(bill(lock.read_text("utf-8")), indent=2))


if __name__ == "__main__":
    main()
