"""run.yaml: the configuration of a run, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from moot.actors.record.folder import RunFolder
from moot.actors.record.schema import SCHEMA_VERSION
from moot.actors.record.sealed_yaml import SEALED, Seal, check_seal
from moot.protocols.errors import RecordError
from moot.protocols.regular_files import MOST_TEXT_BYTES, read_regular
from moot.protocols.yaml_file import parsed_yaml

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""C implementation where PyYAML has it: in Python, reading run.yaml takes longer than a small run."""

EDITED = "edited_by_hand"
"""Key that is true once a person has edited the file, also after later sessions have written it."""

SALVAGED = "salvaged"
"""Key that is true once a damaged record has been salvaged, also after later sessions have written the file."""

REMARKS = {
    EDITED: "run.yaml was edited by hand: what it says need not be what the run did",
    SALVAGED: "this record was damaged and has been salvaged: rows that were lost then are in no figure",
}
"""Remarks on a record for whoever reads its figures, by the key that is true."""


def remarks_on(content: Mapping[str, Any]) -> list[str]:
    """Remarks that hold for a record, from the content of its run.yaml."""
    return [remark for key, remark in REMARKS.items() if content.get(key)]


def read_run_yaml(folder: RunFolder) -> dict[str, Any]:
    """Content of run.yaml.

    Raises:
        RecordError: it cannot be read, is damaged, or was written by an incompatible version of moot.
    """
    return sealed_run_yaml(folder)[0]


def sealed_run_yaml(folder: RunFolder) -> tuple[dict[str, Any], Seal]:
    """Content of run.yaml, and the state of its seal. Raises as `read_run_yaml`."""
    file = folder.path / "run.yaml"
    try:
        data = read_regular(file, MOST_TEXT_BYTES)
        seal = check_seal(file, data)
        content = parsed_yaml(data.decode(), _LOADER)
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise RecordError(f"{file}: cannot be read: {' '.join(str(error).split())}") from error
    if not isinstance(content, dict):
        raise RecordError(f"{file}: expected keys and values")
    if "schema_version" not in content and folder.has_only_run_yaml():
        raise RecordError(f"{folder.path}: no run there: its run.yaml is a configuration, for `moot run`")
    version = content.get("schema_version", SCHEMA_VERSION)
    if type(version) is not int or not 1 <= version <= SCHEMA_VERSION:
        raise RecordError(
            f"{folder.path}: its schema_version is {version!r}; this moot reads 1 to {SCHEMA_VERSION}, the moot that "
            "wrote it reads it"
        )
    content.pop(SEALED, None)
    if seal == "edited":
        content[EDITED] = True
    return content, seal


def is_recorded(file: Path) -> bool:
    """Whether a YAML file is the run.yaml of a record; a copy elsewhere is free to be edited."""
    return file.name == "run.yaml" and (file.parent / "epochs.json").exists()
