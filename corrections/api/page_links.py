"""An app asks for a link to one person's own pages.

The route is here and not with memory's: a page link opens pages, and memory knows of none. A retried request gets the same link,
so its answer is kept like any other; by then the link itself is over.
"""

from django.conf import settings

from corrections.page_links import make_page_link
from memory.api.operation import Answer, ApiView, Call, operation
from memory.api.shapes import ID, INSTANT, Shape, shape
from memory.instants import instant_text

PAGE_LINK = {
    "type": "object",
    "required": ["url", "subject", "expires_at"],
    "properties": {
        "url": {"type": "string", "format": "uri"},
        "subject": ID,
        "expires_at": INSTANT,
    },
}


class PageLinks(ApiView):
    @operation(
        id="memory.makePageLink",
        summary="Make a link to one person's own pages",
        description=(
            "For an app's key: 15 minutes of what is remembered about the person, where they correct, confirm and forget it "
            "without an account. Send it to that person only; whoever opens it acts as them. A person whom the key was not "
            "granted is 404."
        ),
        ability="write",
        body=Shape(shape({"subject": ID}, required=("subject",))),
        answers={201: PAGE_LINK},
        changes=True,
        errors=["not-found"],
        example={"subject": "ann"},
        tag="People's pages",
    )
    def post(self, call: Call) -> Answer:
        subject = call.body["subject"]
        link = make_page_link(principal=call.principal, subject=subject)
        body = {
            "url": settings.KINDMEM_BASE_URL + link.path,
            "subject": subject,
            "expires_at": instant_text(link.expires_at),
        }
        return Answer(201, body, scopes=[{"userId": subject}])
