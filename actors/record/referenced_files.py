"""Files whose hash is in run.yaml: the prompt templates, which are for people, and a classifier's card."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from moot.protocols.regular_files import MOST_TEXT_BYTES, read_regular
from moot.protocols.templates import Templates

CLASSIFIER_CARD = "classifier.json"
"""A classifier's card, in its folder and as a copy in a run's folder."""

MOST_CARD_BYTES = 2**26

_TEMPLATE_HASH_BYTES = 8
"""As `moot.protocols.templates.Templates.hash`."""


class ReferencedFile(NamedTuple):
    """File of a record whose hash is in run.yaml.

    Attributes:
        name: relative to the run's folder.
        fault: what is wrong, and how it is mended; empty for an intact file.
        content: what a damaged file has to hold, if this version of moot has it.
    """

    name: str
    fault: str
    content: bytes | None = None


def template_file(name: str) -> str:
    """Name of a template's file in a run's folder."""
    return f"prompts/{name}.j2"


def content_digest(content: Mapping[str, Any]) -> str:
    """32 hex digits over JSON data, whatever the order of its keys."""
    return hashlib.blake2b(msgspec.json.encode(content, order="deterministic"), digest_size=16).hexdigest()


def referenced_files(run: Path, settings: Mapping[str, Any]) -> Iterator[ReferencedFile]:
    """Compares every file that run.yaml refers to with its hash.

    Args:
        run: the run's folder.
        settings: content of its run.yaml.
    """
    hashes = settings.get("templates")
    if isinstance(hashes, Mapping):
        for name, wanted in hashes.items():
            yield _template(run, str(name), str(wanted))
        found = (path.relative_to(run).as_posix() for path in (run / "prompts").rglob("*.j2"))
        for extra in sorted(set(found) - {template_file(str(name)) for name in hashes}):
            yield ReferencedFile(extra, "run.yaml names no such template: remove it")
    if digest := settings.get("classifier_digest"):
        yield ReferencedFile(CLASSIFIER_CARD, _card_fault(run / CLASSIFIER_CARD, digest))


def _template(run: Path, name: str, wanted: str) -> ReferencedFile:
    file = template_file(name)
    if not (fault := _template_fault(run / file, wanted)):
        return ReferencedFile(file, "")
    packaged = Templates()
    if name in packaged.sources and packaged.hash(name) == wanted:
        return ReferencedFile(file, f"{fault}: `--salvage` writes it again", packaged.sources[name].encode())
    return ReferencedFile(file, f"{fault}: restore it from a copy")


def _template_fault(file: Path, wanted: str) -> str:
    if not file.is_file():
        return "it is missing"
    try:
        found = hashlib.blake2b(read_regular(file, MOST_TEXT_BYTES), digest_size=_TEMPLATE_HASH_BYTES).hexdigest()
    except OSError as error:
        return f"it cannot be read: {error.strerror}"
    return "" if found == wanted else "its hash is not the one in run.yaml"


def _card_fault(file: Path, wanted: object) -> str:
    advice = "restore it from the classifier's folder"
    if not file.is_file():
        return f"it is missing: {advice}"
    try:
        content = msgspec.json.decode(read_regular(file, MOST_CARD_BYTES), type=dict[str, Any])
    except (OSError, ValueError, RecursionError) as error:
        return f"it cannot be read ({error}): {advice}"
    is_intact = content.pop("digest", None) == wanted == content_digest(content)
    return "" if is_intact else f"its digest is not the one in run.yaml: {advice}"
