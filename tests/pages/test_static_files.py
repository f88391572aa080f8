"""What the browser is given: small, our own, and the vendored file is the one that was looked at."""

import re
from hashlib import sha256
from pathlib import Path

from django.conf import settings

STATIC = Path(settings.BASE_DIR) / "static"
TEMPLATES = Path(settings.BASE_DIR) / "templates"


def test_the_vendored_file_is_the_one_in_the_list() -> None:
    listed = dict(
        re.findall(r"\| `([^`]+)` \|.*`([0-9a-f]{64})`", (STATIC / "vendor/README.md").read_text())
    )
    files = {one.name: one for one in (STATIC / "vendor").iterdir() if one.suffix == ".js"}
    assert {name: sha256(one.read_bytes()).hexdigest() for name, one in files.items()} == listed


def test_style_and_script_stay_small() -> None:
    assert (STATIC / "css/app.css").stat().st_size <= 32 * 1024
    assert (STATIC / "js/app.js").stat().st_size <= 6 * 1024
    assert (STATIC / "js/passkeys.js").stat().st_size <= 2 * 1024


def test_templates_hold_no_inline_script_style_or_unescaped_text() -> None:
    forbidden = re.compile(
        r"\sstyle=|<style|\son[a-z]+=|\|\s*safe\b|autoescape off|hx-on|js:|hx-vals=.js|<script(?![^>]*\ssrc=)"
    )
    found = {
        str(one.relative_to(TEMPLATES)): forbidden.findall(one.read_text())
        for one in TEMPLATES.rglob("*.html")
    }
    assert not {name: hits for name, hits in found.items() if hits}


def test_only_known_htmx_attributes_are_used() -> None:
    known = {"hx-get", "hx-post", "hx-target", "hx-swap", "hx-push-url", "hx-trigger", "hx-sync",
             "hx-swap-oob", "hx-headers:inherited"}  # fmt: skip
    used = {
        name
        for one in TEMPLATES.rglob("*.html")
        for name in re.findall(r"\s(hx-[a-z:-]+)=", one.read_text())
    }
    assert used <= known


def test_forms_with_htmx_have_an_action_and_links_an_address() -> None:
    for one in TEMPLATES.rglob("*.html"):
        for tag in re.findall(r"<(?:form|a)\s[^>]*hx-(?:get|post)[^>]*>", one.read_text()):
            assert "action=" in tag or "href=" in tag, (one.name, tag)
