"""Files of transcripts to import: recorded runs where they are at hand, else those that the product ships."""

import gzip
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
RECORDED = ROOT.parent / "shared" / "data" / "airline-agent-runs.json.gz"
SHIPPED = ROOT / "kindmem" / "demo" / "runs.json"


def the_file() -> Path:
    return RECORDED if RECORDED.exists() else SHIPPED


def transcripts(path: Path) -> list[dict[str, Any]]:
    data = path.read_bytes()
    return list(json.loads(gzip.decompress(data) if path.suffix == ".gz" else data))


def written(path: Path, values: Iterable[Any]) -> Path:
    """The values as JSONL, gzipped when the name says so."""
    data = "".join(json.dumps(value) + "\n" for value in values).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def agent(text: str | None, *calls: tuple[str, str, str]) -> dict[str, Any]:
    """calls: (id, tool, arguments as JSON text)."""
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if calls:
        message["tool_calls"] = [
            {"id": call_id, "type": "function", "function": {"name": tool, "arguments": arguments}}
            for call_id, tool, arguments in calls
        ]
    return message


def result(call_id: str, text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def counted(run: Sequence[dict[str, Any]]) -> dict[str, int]:
    """How many entries of each kind a transcript must make, counted without the importer."""
    counts = {
        "system-message": 0,
        "user-message": 0,
        "agent-message": 0,
        "tool-call": 0,
        "tool-result": 0,
    }
    for message in run:
        calls = message.get("tool_calls") or []
        if message["role"] == "assistant":
            counts["tool-call"] += len(calls)
            counts["agent-message"] += bool(message["content"]) or not calls
        else:
            kind = {"system": "system-message", "user": "user-message", "tool": "tool-result"}
            counts[kind[message["role"]]] += 1
    return counts
