"""`seed_demo`: the demo tenant, once, and the sign-ins and keys that go with it, shown once."""

from typing import Any

from kindmem.demo.seed import MEMBERS, PROJECTS, SLUG, Demo, seed
from memory.management.command import OperatorCommand


class Command(OperatorCommand):
    """Make the demo tenant."""

    help = (
        "Make the demo tenant with people, keys, agent runs and facts, and print the sign-ins and "
        "keys. Where it is already, nothing is changed."
    )

    def run(self, options: dict[str, Any]) -> None:
        demo = seed()
        if demo is None:
            self.say({"tenant": SLUG, "signIns": [], "apiKey": None, "isNew": False}, _WAS_THERE)
        else:
            self.say(_answer(demo), _text(demo))


def _answer(demo: Demo) -> dict[str, Any]:
    return {
        "tenant": SLUG,
        "signIns": [
            {"role": one.role, "email": one.email, "password": one.password}
            for one in demo.sign_ins
        ],
        "apiKey": demo.app_token,
        "agentKey": demo.agent_token,
        "isNew": True,
    }


def _text(demo: Demo) -> str:
    rows = [f"  {one.role:<8} {one.email:<32} {one.password}" for one in demo.sign_ins]
    return "\n".join(
        [
            f"Demo tenant '{SLUG}'. Keep these: they are shown once and kept nowhere.",
            *rows,
            f"  API key  {demo.app_token}  (an app: the whole tenant)",
            f"  API key  {demo.agent_token}  (an agent: projects {' and '.join(PROJECTS)})",
        ]
    )


_WAS_THERE = (
    f"The demo tenant '{SLUG}' is there already; its sign-ins and keys were shown when it was made.\n"
    f"  A new password: python manage.py changepassword {MEMBERS[0][1]}\n"
    f"  A new key:      python manage.py create_api_key {SLUG} --name mine --role app --all"
)
