"""run.yaml: the configuration of a run, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from moot.actors.record.folder import RunFolder
from moot.actors.record.schema import SCHEMA_VERSION
from moot.protocols.errors import RecordError
from moot.protocols.regular_files import read_regular_text
from moot.protocols.yaml_file import parsed_yaml

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
"""C implementation where PyYAML has it: in Python, reading run.yaml takes longer than a small run."""


def yaml_text(content: Mapping[str, Any]) -> str:
    """Plain data as YAML, with its keys in the given order."""
    return str(yaml.dump(content, Dumper=_DUMPER, sort_keys=False, allow_unicode=True, width=120))


def read_run_yaml(folder: RunFolder) -> dict[str, Any]:
    """Content of run.yaml.

    Raises:
        RecordError: it cannot be read, or was written by an incompatible version of moot.
    """
    file = folder.path / "run.yaml"
    try:
        content = parsed_yaml(read_regular_text(file), _LOADER)
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise RecordError(f"{file}: cannot be read: {' '.join(str(error).split())}") from error
    if not isinstance(content, dict):
        raise RecordError(f"{file}: expected keys and values")
    version = content.get("schema_version", SCHEMA_VERSION)
    if type(version) is not int or not 1 <= version <= SCHEMA_VERSION:
        raise RecordError(
            f"{folder.path}: its schema_version is {version!r}; this moot reads 1 to {SCHEMA_VERSION}, the moot that "
            "wrote it reads it"
        )
    return content
