"""Agent B: what to look for in the pictures of a claim, and what each of them shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

import msgspec

from moot.protocols.case import Case, Image
from moot.protocols.ceda.items import Item
from moot.protocols.ceda.settings import CedaSettings
from moot.protocols.errors import AskFailed
from moot.protocols.floor import Floor, Request
from moot.protocols.replies import FreeText

PROMPT, IMAGE = "ceda/image_prompt", "ceda/image"


class MissingPicture(msgspec.Struct, frozen=True):
    """A picture of which there is no description.

    Attributes:
        picture: 0-based number of the case's picture.
        reason: why.
    """

    picture: int
    reason: str


@dataclass(frozen=True, slots=True)
class Looked:
    """What came of a case's pictures.

    Attributes:
        looked_for: the extraction prompt; empty for the fixed one, or when none could be had.
        items: the descriptions, in the pictures' order.
        missing: the pictures that could not be described.
    """

    looked_for: str
    items: tuple[Item, ...]
    missing: tuple[MissingPicture, ...]


async def look(case: Case, floor: Floor, settings: CedaSettings, texts: Sequence[Item]) -> Looked:
    """Describe every picture of the case; a picture that fails is missing evidence.

    Args:
        texts: the evidence that there is without pictures.

    Raises:
        AskFailed: nothing is left to go by: no picture could be described, and there are no texts.
    """
    looked_for = ""
    items: list[Item] = []
    failures: list[tuple[int, AskFailed]] = []
    try:
        if settings.vision.prompt == "dynamic":
            looked_for = await _extraction_prompt(case, floor, settings)
    except AskFailed as error:
        failures = [(number, error) for number in range(len(case.images))]
    else:
        for number, image in enumerate(case.images):
            try:
                seen = await _description(floor, number, image, looked_for)
            except AskFailed as error:
                failures.append((number, error))
            else:
                items.append(_item(len(texts) + len(items) + 1, number, seen))
    if failures and not items and not texts:
        raise failures[0][1]
    missing = tuple(MissingPicture(number, f"{error.kind}: {error.message}") for number, error in failures)
    return Looked(looked_for, tuple(items), missing)


async def _extraction_prompt(case: Case, floor: Floor, settings: CedaSettings) -> str:
    slots = {"role": settings.role, "instruction": settings.instruction, "claim": case.question}
    turn = await floor.ask("vision/0", PROMPT, slots, reply=FreeText, path="vision/prompt")
    return turn.reply.text.strip()


async def _description(floor: Floor, number: int, image: Image, looked_for: str) -> str:
    slots = {"looked_for": looked_for}
    request = Request("vision/0", IMAGE, slots, FreeText, f"vision/image/{number}", images=(image,))
    key = blake2b(image.media_type.encode() + b"\0" + image.data, digest_size=16).hexdigest()
    return (await floor.shared(key, request)).reply.text.strip()


def _item(number: int, picture: int, text: str) -> Item:
    return Item(id=f"E{number}", kind="picture", document=f"picture {picture + 1}", picture=picture, text=text)
