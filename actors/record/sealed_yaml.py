"""Sealed YAML: the first line is a comment with the CRC-32 of the lines below.

It is the first line, so that no cut loses the checksum and keeps content. A person who edits the file writes `edited`
for the digits, which no flipped bit does. The lines have a key that says that there is a seal above them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal
from zlib import crc32

import yaml

from moot.protocols.errors import RecordError

_DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
"""C implementation where PyYAML has it."""

_SEAL = "# crc32 {} of the lines below; if you edit them, write edited for the eight digits"
_SEALED = re.compile(re.escape(_SEAL).replace(r"\{\}", r"([0-9a-f]{8}|edited)").encode() + rb"\r?\n")
_ADVICE = (
    "Restore it from a copy. If you edited it, write edited for the eight digits after crc32 in its first line, or "
    f"begin the file with {_SEAL.format('edited')!r}"
)

SEALED = "sealed"
"""Key of a file whose lines were written below a seal."""

_MUST_BE_SEALED = re.compile(rf"^{SEALED}: *true".encode(), re.MULTILINE)

Seal = Literal["whole", "edited", "none"]
"""State of a file's seal: its lines are as written; a person says that they were edited; it is of an earlier version,
without a seal."""


def seal_yaml(content: Mapping[str, Any]) -> bytes:
    """Plain data as sealed YAML, with its keys in the given order, and a last one that says that it is sealed."""
    lines = yaml.dump(
        {**content, SEALED: True}, Dumper=_DUMPER, sort_keys=False, allow_unicode=True, width=120
    ).encode()
    return _SEAL.format(f"{crc32(lines):08x}").encode() + b"\n" + lines


def check_seal(file: Path, data: bytes) -> Seal:
    """Compares the content of a YAML file with its seal.

    Args:
        file: name for error messages.

    Raises:
        RecordError: it is damaged, or was edited and does not say so.
    """
    sealed = _SEALED.match(data)
    if sealed is None:
        if _MUST_BE_SEALED.search(data) or b"crc32" in data.partition(b"\n")[0]:
            raise RecordError(f"{file} is damaged: its first line is no checksum as moot writes it. {_ADVICE}")
        return "none"
    if sealed[1] == b"edited":
        return "edited"
    if sealed[1] != b"%08x" % crc32(data[sealed.end() :]):
        raise RecordError(f"{file} is damaged, or was edited: its checksum is not that of its lines. {_ADVICE}")
    return "whole"
