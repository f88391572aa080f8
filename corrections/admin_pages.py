"""The admin's pages, in the order in which they are listed: beside each of them, and on the overview.

A part of the product that brings a page for admins adds one line here. A page whose address does not exist is left out.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.urls import NoReverseMatch, reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

if TYPE_CHECKING:
    from corrections.visit import Visit

OVERVIEW = "admin-overview"
ROLES = ("owner", "admin")


@dataclass(frozen=True, slots=True)
class AdminPage:
    """`page`: the name of its address. `says`: what one does there, in a line."""

    page: str
    label: str | Promise
    says: str | Promise
    roles: tuple[str, ...] = ROLES


@dataclass(frozen=True, slots=True)
class Listed:
    """A page that the reader may open; `is_here`: they are on it or below it."""

    label: str | Promise
    says: str | Promise
    url: str
    is_here: bool


PAGES: list[AdminPage] = [
    AdminPage(OVERVIEW, _("Overview"), ""),
    AdminPage(
        "reviews",
        _("Review queue"),
        _("What agents wrote and a person decides on before it counts."),
    ),
    AdminPage(
        "quarantines",
        _("Quarantine"),
        _("Take everything that one key or one run wrote out of use."),
    ),
    AdminPage("holds", _("Legal holds"), _("What is kept for a case, whatever else is due.")),
    AdminPage("retention", _("Retention"), _("How long facts are kept, by type and by default.")),
    AdminPage("sweeps", _("Sweeps"), _("What was destroyed because its time was over.")),
    AdminPage(
        "erasures", _("Erasures"), _("Erase everything about a person, and see how far it is.")
    ),
    AdminPage(
        "correction-routes", _("Correction routes"), _("The named ways in which people correct.")
    ),
    AdminPage(
        "policy-sources", _("Policy sources"), _("Where the values of policies are asked for.")
    ),
    AdminPage(
        "fact-types", _("Types"), _("How facts of each type are searched, checked and kept.")
    ),
    AdminPage("api-keys", _("Agents and keys"), _("Which programs come in, and what each may do.")),
    AdminPage("members", _("Members and roles"), _("Who signs in here, and what each may do.")),
    AdminPage("webhooks", _("Webhooks"), _("Which systems are told when something happens.")),
    AdminPage("workspace", _("Workspace"), _("What holds for everybody's own pages.")),
]


def pages_for(visit: "Visit") -> list[Listed]:
    """Every page that the reader may open, in order."""
    path = visit.request.path
    found = []
    for one in PAGES:
        if not visit.may(*one.roles):
            continue
        try:
            url = reverse(one.page, args=[visit.slug])
        except NoReverseMatch:
            continue
        is_here = path == url if one.page == OVERVIEW else path.startswith(url)
        found.append(Listed(one.label, one.says, url, is_here))
    return found


def is_below_admin(visit: "Visit") -> bool:
    return visit.may(*ROLES) and visit.request.path.startswith(reverse(OVERVIEW, args=[visit.slug]))
