"""Simulated vision model: a picture's format and size, and a planted description of it.

Format, size and the beginning of the SHA-256 are those of the received bytes: `sha256sum` of the file is equal if the
picture was sent unchanged. The description depends on the bytes and the requested words, and means nothing.
"""

from __future__ import annotations

import io
import re
from hashlib import sha256

from PIL import Image as Pillow

from moot.actors.simulated.claims import claim_of, telling_words
from moot.actors.simulated.judges import content_words
from moot.actors.simulated.prompt import ParsedPrompt
from moot.actors.simulated.turn import ReplyDraft, SimulatedTurn
from moot.protocols.case import Image
from moot.protocols.seeds import stable_uniform

_READ = ("PNG", "JPEG", "WEBP", "GIF")
_NAMES = {"MPO": "JPEG", "WEBP": "WebP"}
_DIGITS = 12
_SEEN, _MOST_TERMS = 0.6, 8
_WORD = re.compile(r"\w{3,}")
_ABOUT_PICTURES = re.compile(r"\b(?:image|picture|figure|photo)s?\b", re.IGNORECASE)
_EXTRACTION = (
    "Describe in one paragraph what the picture shows of the following: {}. Give counts, sizes and words as they stand"
    " in it, state only what can be seen, and say in the end what follows.",
    "Say in one paragraph which of these can be seen in the picture, and how many, how large and where: {}. Read out"
    " numbers and words exactly, and end with a conclusion.",
)
_PHRASING = content_words(" ".join(_EXTRACTION))


def asks_for_extraction(prompt: ParsedPrompt) -> bool:
    """Whether a prompt asks for extraction targets: without a form, with a claim alone and mention of pictures."""
    alone = not prompt.form and {fence.tag for fence in prompt.fences} == {"claim"}
    return alone and _ABOUT_PICTURES.search(prompt.instructions) is not None


def write_extraction(turn: SimulatedTurn) -> ReplyDraft:
    """Extraction targets in the pictures of a case: the words of its claim, in order."""
    claim = claim_of(turn.prompt)
    words = telling_words(claim)
    terms = [word for word in dict.fromkeys(_WORD.findall(claim.casefold())) if word in words][:_MOST_TERMS]
    return ReplyDraft(turn.pick(_EXTRACTION).format(", ".join(terms) or "all that matters"))


def asks_for_description(prompt: ParsedPrompt) -> bool:
    """Whether a prompt asks for a description: with pictures and extraction targets."""
    return not prompt.form and bool(prompt.pictures) and bool(prompt.tagged("looked_for"))


def write_description(turn: SimulatedTurn) -> ReplyDraft:
    """Describes all pictures in one paragraph; deterministic in the bytes, whatever is drawn."""
    pictures = turn.prompt.pictures
    looked_for = " ".join(fence.body for fence in turn.prompt.tagged("looked_for"))
    words = content_words(looked_for) - _PHRASING
    terms = [word for word in dict.fromkeys(_WORD.findall(looked_for.casefold())) if word in words]
    names = [f"Picture {place}" for place in range(1, len(pictures) + 1)] if len(pictures) > 1 else ["The picture"]
    return ReplyDraft(" ".join(_description(name, image, terms) for name, image in zip(names, pictures, strict=True)))


def _description(name: str, image: Image, terms: list[str]) -> str:
    size = f"it has {len(image.data)} bytes, and their SHA-256 begins with {sha256(image.data).hexdigest()[:_DIGITS]}."
    try:
        opened = Pillow.open(io.BytesIO(image.data), formats=_READ)  # reads the header only
    except Exception:  # Pillow's decoders raise whatever a broken file leads them into
        return f"{name} cannot be read; {size}"
    kind = _NAMES.get(opened.format or "", opened.format)
    return f"{name} is a {kind} of {opened.width} x {opened.height} pixels; {size} {_reading(image, terms)}"


def _reading(image: Image, terms: list[str]) -> str:
    def drawn(about: str) -> float:
        return stable_uniform("reading", image.data, about)

    seen = [term for term in terms if drawn(term) < _SEEN][:_MOST_TERMS]
    shown = f"It shows {', '.join(seen)}." if seen else "It shows nothing of what was looked for."
    parts, share = 2 + int(8 * drawn("count")), 10 + int(80 * drawn("share"))
    return f"{shown} The largest of {parts} parts takes {share} % of its width."
