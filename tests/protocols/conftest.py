"""Files of cases to read."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., str]:
    """Writes a file of a text or bytes; gives its path."""

    def _write(content: str | bytes, name: str = "cases.jsonl") -> str:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return str(path)

    return _write


@pytest.fixture
def rows(write: Callable[..., str]) -> Callable[..., str]:
    """Writes a file of one JSON object per line; gives its path."""
    return lambda *each: write("".join(json.dumps(row) + "\n" for row in each))
