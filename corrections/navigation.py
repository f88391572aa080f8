"""What each role finds where: the links of the shell, and the roles in words."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.urls import NoReverseMatch, reverse
from django.utils.translation import gettext as _

if TYPE_CHECKING:
    from corrections.visit import Visit


@dataclass(frozen=True, slots=True)
class Link:
    """`is_here`: the reader is on it or below it."""

    label: str
    url: str
    is_here: bool


def role_name(role: str) -> str:
    """The role as people read it."""
    names = {
        "owner": _("Owner"),
        "admin": _("Admin"),
        "auditor": _("Auditor"),
        "person": _("Person"),
        "agent": _("Agent"),
        "app": _("App"),
    }
    return names.get(role, role)


def _offered(visit: "Visit") -> list[tuple[str, str]]:
    links: list[tuple[str, str]] = []
    if visit.principal.subject is not None:
        links += [
            (_("Memory"), "memory-list"),
            (_("Facts"), "my-facts"),
            (_("My corrections"), "my-corrections"),
        ]
        if not visit.may("owner", "admin", "auditor"):
            links.append((_("No longer used"), "register"))
        if not visit.is_guest:
            links.append((_("Downloads"), "downloads"))
    if visit.may("owner", "admin"):
        links.append((_("Admin"), "admin-overview"))
    if visit.may("owner", "admin", "auditor"):
        links += [
            (_("Runs"), "runs"),
            (_("Chain health"), "chain-health"),
            (_("Verifications"), "verifications"),
            (_("Evidence"), "evidence-exports"),
            (_("All facts"), "audit-facts"),
            (_("Access log"), "access-log"),
            (_("Register"), "register"),
        ]
    if visit.may("auditor"):
        links += [
            (_("Holds"), "holds"),
            (_("Retention"), "retention"),
            (_("Sweeps"), "sweeps"),
        ]
    if not visit.is_guest:
        links.append((_("Settings"), "settings"))
    return links


def links_of(visit: "Visit") -> list[Link]:
    """The reader's links, in order."""
    found = []
    for label, name in _offered(visit):
        try:
            url = reverse(name, args=[visit.slug])
        except NoReverseMatch:
            continue
        found.append(Link(label, url, _is_here(visit, name, url)))
    return found


_BELOW = {
    "runs": ("audit/run/", "audit/e/"),
    "register": ("audit/record/",),
    "audit-facts": ("audit/fact/",),
}


def _is_here(visit: "Visit", name: str, url: str) -> bool:
    """Whether the reader is on the page or below it; a run and its entries are below the list of runs."""
    path = visit.request.path
    below = _BELOW.get(name, ())
    return path.startswith((url, *(reverse("home", args=[visit.slug]) + one for one in below)))


def home_of(visit: "Visit") -> str:
    """Where the reader starts."""
    links = links_of(visit)
    return links[0].url
