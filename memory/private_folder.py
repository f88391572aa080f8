"""Folders that are their owner's alone."""

from pathlib import Path


def make_private(folder: Path) -> None:
    """Make the folder and what is missing above it, each for its owner alone: mkdir's mode is the last one's only."""
    for missing in [one for one in (*reversed(folder.parents), folder) if not one.exists()]:
        missing.mkdir(mode=0o700, exist_ok=True)
