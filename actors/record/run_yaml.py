"""Reading run.yaml: what a run was configured with, as plain data."""

from __future__ import annotations

from typing import Any

import yaml

from moot.actors.record.folder import RunFolder
from moot.protocols.errors import RecordError


def read_run_yaml(folder: RunFolder) -> dict[str, Any]:
    """The whole run.yaml.

    Raises:
        RecordError: it cannot be read.
    """
    file = folder.path / "run.yaml"
    try:
        content = yaml.safe_load(file.read_text("utf-8"))
    except (OSError, UnicodeError, yaml.YAMLError) as error:
        raise RecordError(f"{file}: cannot be read: {' '.join(str(error).split())}") from error
    if not isinstance(content, dict):
        raise RecordError(f"{file}: expected keys and values")
    return content
