"""Agent B: extraction targets for the pictures of a claim, and descriptions of the pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

from moot.protocols.case import Case
from moot.protocols.ceda.items import Item
from moot.protocols.ceda.settings import CedaSettings
from moot.protocols.errors import AskFailed
from moot.protocols.events import EventData
from moot.protocols.floor import Floor, Request
from moot.protocols.messages import Failure
from moot.protocols.replies import FreeText

PROMPT, IMAGE = "ceda/image_prompt", "ceda/image"


class MissingPicture(EventData):
    """A picture without a description.

    Attributes:
        picture: 0-based number of the case's picture.
        reason: of the failure.
    """

    picture: int
    reason: str


@dataclass(frozen=True, slots=True)
class PictureDescriptions:
    """Result of describing a case's pictures.

    Attributes:
        looked_for: the extraction prompt; empty for the fixed one, which is also the fallback.
        items: the descriptions, in the pictures' order; equal pictures have one, which names the first of them.
        missing: the pictures that could not be described.
    """

    looked_for: str
    items: tuple[Item, ...]
    missing: tuple[MissingPicture, ...]


def distinct_pictures(case: Case) -> dict[str, list[int]]:
    """Numbers of equal pictures of the case by their hash, in order."""
    found: dict[str, list[int]] = {}
    for number, image in enumerate(case.images):
        key = blake2b(image.media_type.encode() + b"\0" + image.data, digest_size=16).hexdigest()
        found.setdefault(key, []).append(number)
    return found


async def describe_pictures(
    case: Case, floor: Floor, settings: CedaSettings, texts: Sequence[Item]
) -> PictureDescriptions:
    """Describe every picture of the case, all at once; a picture that fails is missing evidence.

    Args:
        texts: the evidence that there is without pictures.

    Raises:
        AskFailed: no evidence remains: no picture could be described, and there are no texts.
    """
    looked_for = await _extraction_prompt(case, floor, settings) if settings.vision.prompt == "dynamic" else ""
    pictures = distinct_pictures(case)
    turns = await floor.shared_all([(key, _request(case, equal[0], looked_for)) for key, equal in pictures.items()])
    items: list[Item] = []
    missing: list[MissingPicture] = []
    for turn, equal in zip(turns, pictures.values(), strict=True):
        if isinstance(turn, Failure):
            missing += [MissingPicture(picture=number, reason=f"{turn.kind}: {turn.message}") for number in equal]
        else:
            items.append(_item(len(texts) + len(items) + 1, equal[0], turn.reply.text.strip()))
    failed = next((turn for turn in turns if isinstance(turn, Failure)), None)
    if failed is not None and not items and not texts:
        raise AskFailed(failed.path, failed.kind, failed.message)
    return PictureDescriptions(looked_for, tuple(items), tuple(sorted(missing, key=lambda each: each.picture)))


async def _extraction_prompt(case: Case, floor: Floor, settings: CedaSettings) -> str:
    """Extraction targets for this claim; empty, for everything, if no model gives any."""
    slots = {"role": settings.role, "instruction": settings.instruction, "claim": case.question}
    try:
        turn = await floor.ask("vision/0", PROMPT, slots, reply=FreeText, path="vision/prompt")
    except AskFailed:
        return ""
    return turn.reply.text.strip()


def _request(case: Case, number: int, looked_for: str) -> Request[FreeText]:
    slots = {"looked_for": looked_for}
    return Request("vision/0", IMAGE, slots, FreeText, f"vision/image/{number}", images=(case.images[number],))


def _item(number: int, picture: int, text: str) -> Item:
    return Item(
        id=f"E{number}",
        kind="picture",
        document=f"picture {picture + 1}",
        chunk=None,
        page=None,
        picture=picture,
        text=text,
        similarity=None,
    )
