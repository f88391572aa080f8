"""Chat transcripts in the OpenAI message format as runs: which message becomes which entries, with which cause and payload.

One transcript is `{"messages": […]}` or `{"traj": […]}`. Ids are made of the run's id and the entry's place, so the same
transcript makes the same entries each time. What the agent says or calls is caused by what it last heard: a person's message or
a tool's result; a result is caused by its call. Nothing of a message is dropped: what has no place of its own stays beside it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings

from memory import admission
from memory.access import Scope
from memory.admission import ID_MAX
from memory.canonical import canonical
from memory.errors import BadInput
from memory.importers.tool_result_facts import ToolFact, fact_of_result
from memory.log_entry import NewEntry

LISTS = ("messages", "traj")
KINDS = {
    "system": "system-message",
    "developer": "system-message",
    "user": "user-message",
    "assistant": "agent-message",
    "tool": "tool-result",
    "function": "tool-result",
}
ACTORS = {"system": "system", "developer": "system", "user": "user", "assistant": "agent"}
_PLACED = frozenset(("role", "content", "tool_calls", "function_call", "tool_call_id"))


@dataclass(frozen=True, slots=True)
class RunFact:
    """A state of a thing that entry number `cause` tells. `revision` counts the states of that thing in this run from 1."""

    id: str
    revision: int
    fact: ToolFact
    cause: int


@dataclass(frozen=True, slots=True)
class RunDraft:
    """A run to import. `facts` in the order of their causes; `notes` says what was left out or could not be linked."""

    run_id: str
    scope: Scope
    entries: list[NewEntry]
    facts: list[RunFact]
    notes: list[str]


def run_of_transcript(value: Any, *, run_id: str, scope: Scope) -> RunDraft:
    """The run that an admitted transcript makes. Raises BadInput with a JSON Pointer to each message that has another shape."""
    if not isinstance(value, dict):
        raise BadInput.at("", "must be an object with a list 'messages' or 'traj'")
    name = next((one for one in LISTS if isinstance(value.get(one), list)), None)
    if name is None:
        raise BadInput.at("", "must have a list 'messages' or 'traj'")
    if not value[name]:
        raise BadInput.at(f"/{name}", "has no message")
    reader = _Reader(run_id, scope, f"/{name}")
    for place, message in enumerate(value[name]):
        reader.take(place, message)
    return reader.finish()


@dataclass(slots=True)
class _Call:
    entry_id: str
    tool: str
    arguments: Any


@dataclass(slots=True)
class _Reader:
    run_id: str
    scope: Scope
    pointer: str
    entries: list[NewEntry] = field(default_factory=list)
    facts: list[RunFact] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    issues: list[dict[str, str]] = field(default_factory=list)
    heard: str | None = None
    calls: dict[str, _Call] = field(default_factory=dict)
    states: dict[str, tuple[int, str]] = field(default_factory=dict)

    def take(self, place: int, message: Any) -> None:
        """Add the message's entries, or say what is wrong with it."""
        try:
            self._take(f"{self.pointer}/{place}", message)
        except BadInput as error:
            self.issues.extend(error.issues)

    def finish(self) -> RunDraft:
        if self.issues:
            raise BadInput(issues=self.issues)
        if not self.entries:
            raise BadInput.at(self.pointer, "has no message that says anything")
        return RunDraft(self.run_id, self.scope, self.entries, self.facts, self.notes)

    def _take(self, at: str, message: Any) -> None:
        if not isinstance(message, dict):
            raise BadInput.at(at, "must be an object")
        role = message.get("role")
        if not isinstance(role, str) or role not in KINDS:
            raise BadInput.at(f"{at}/role", "must be one of: " + ", ".join(KINDS))
        said = _said(message, at)
        if role == "assistant":
            self._take_agent(at, message, said)
        elif KINDS[role] == "tool-result":
            self._take_result(at, message, said)
        else:
            entry_id = self._add(at, KINDS[role], ACTORS[role], said)
            if role == "user":
                self.heard = entry_id

    def _take_agent(self, at: str, message: Mapping[str, Any], said: dict[str, Any]) -> None:
        calls = _calls(message, at)
        if not calls or any(said.values()):
            self._add(at, "agent-message", ACTORS["assistant"], said, cause=self.heard)
        for call_at, call_id, tool, arguments in calls:
            payload = {"name": tool, "arguments": arguments}
            if call_id is not None:
                payload["tool_call_id"] = call_id
            parsed = _parsed(payload)
            entry_id = self._add(call_at, "tool-call", f"tool:{tool}", parsed, cause=self.heard)
            self.calls[call_id or f"function:{tool}"] = _Call(entry_id, tool, parsed["arguments"])

    def _take_result(self, at: str, message: Mapping[str, Any], said: dict[str, Any]) -> None:
        call_id, name = message.get("tool_call_id"), message.get("name")
        if not isinstance(call_id, str | None):
            raise BadInput.at(f"{at}/tool_call_id", "must be text")
        call = self.calls.get(call_id or f"function:{name}")
        if call_id is not None:
            said["tool_call_id"] = call_id
        if call is None:
            self.notes.append(f"{at}: no call in this transcript has this result's id")
            tool = name if isinstance(name, str) and name else "unknown"
        else:
            tool = call.tool
            said.setdefault("name", tool)
        self.heard = self._add(
            at, "tool-result", f"tool:{tool}", said, cause=call.entry_id if call else None
        )
        if call is not None:
            self._note_fact(at, fact_of_result(tool, call.arguments, said.get("text")))

    def _add(
        self, at: str, kind: str, actor: str, payload: Any, *, cause: str | None = None
    ) -> str:
        if len(actor) > ID_MAX:
            raise BadInput.at(at, f"names a tool with more than {ID_MAX - 5} characters")
        limit = settings.KINDMEM_BATCH_BODY_MAX_BYTES
        if len(canonical(payload).encode()) > limit:
            raise BadInput.at(at, f"has more than {limit >> 20} MiB")
        entry_id = f"{self.run_id}:{len(self.entries)}"
        self.entries.append(
            NewEntry(
                kind=kind,
                scope=self.scope,
                id=entry_id,
                actor=actor,
                payload=payload,
                caused_by=cause,
            )
        )
        return entry_id

    def _note_fact(self, at: str, fact: ToolFact | None) -> None:
        if fact is None:
            return
        fact_id = f"{self.run_id}:{fact.type}:{fact.thing}"
        text = canonical(fact.content)
        limit = settings.KINDMEM_CONTENT_MAX_BYTES
        if (
            max(map(len, (fact_id, fact.type, fact.customer))) > ID_MAX
            or len(text.encode()) > limit
        ):
            self.notes.append(f"{at}: makes no fact, since its ids or its content are too long")
            return
        revision, before = self.states.get(fact_id, (0, None))
        if text != before:
            self.states[fact_id] = (revision + 1, text)
            self.facts.append(RunFact(fact_id, revision + 1, fact, len(self.entries) - 1))


def _said(message: Mapping[str, Any], at: str) -> dict[str, Any]:
    """The payload of what a message says: `text`, or `content` where it is a list of parts, beside whatever else it holds."""
    content = message.get("content")
    said = {
        name: one for name, one in message.items() if name not in _PLACED and one not in (None, [])
    }
    if isinstance(content, str):
        said["text"] = content
    elif isinstance(content, list):
        said["content"] = content
    elif content is not None:
        raise BadInput.at(f"{at}/content", "must be text, a list of parts or null")
    elif KINDS[message["role"]] == "tool-result":
        said["text"] = ""  # a tool that answers nothing has answered
    elif message["role"] != "assistant":
        raise BadInput.at(f"{at}/content", "is missing, so the message says nothing")
    return said


def _calls(message: Mapping[str, Any], at: str) -> list[tuple[str, str | None, str, Any]]:
    """(place, id, tool, arguments) of each tool call, those of the older `function_call` too."""
    listed = message.get("tool_calls")
    if listed is not None and not isinstance(listed, list):
        raise BadInput.at(f"{at}/tool_calls", "must be a list")
    calls = []
    for number, call in enumerate(listed or []):
        where = f"{at}/tool_calls/{number}"
        if not isinstance(call, dict):
            raise BadInput.at(where, "must be an object")
        call_id = call.get("id")
        if not isinstance(call_id, str | None):
            raise BadInput.at(f"{where}/id", "must be text")
        calls.append(
            (
                where,
                call_id,
                *_tool_and_arguments(call.get("function") or call.get("custom"), where),
            )
        )
    older = message.get("function_call")
    if older is not None:
        where = f"{at}/function_call"
        calls.append((where, None, *_tool_and_arguments(older, where)))
    return calls


def _tool_and_arguments(said: Any, at: str) -> tuple[str, Any]:
    name = said.get("name") if isinstance(said, dict) else None
    if not isinstance(name, str) or not name:
        raise BadInput.at(at, "must name the tool that is called")
    return name, said.get("arguments", said.get("input"))


def _parsed(payload: dict[str, Any]) -> dict[str, Any]:
    """The payload of a call, its arguments as a value where their text is JSON that can be kept."""
    arguments = payload["arguments"]
    if not isinstance(arguments, str):
        return payload
    data = arguments.encode()
    try:
        value = admission.admit(data, max_bytes=len(data))
        return dict(admission.admit_value({**payload, "arguments": value}))
    except admission.BadInput:
        return payload
