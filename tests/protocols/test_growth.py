"""Whatever a model writes is read in time that grows with its length: no shape of a long reply holds up a process."""

from __future__ import annotations

import importlib
import json
import pkgutil
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

import moot.protocols
from moot.protocols.ceda.conflicts import first_difference, sentences_of
from moot.protocols.ceda.quantities import marked
from moot.protocols.ceda.stance import relation_of
from moot.protocols.ceda.wording import wording_of
from moot.protocols.crit.repeats import first_alike
from moot.protocols.replies import Position, Reply
from moot.protocols.reply_parsing import InvalidReply, parse_reply
from moot.protocols.rubrics.rubric import whole_number
from moot.protocols.socrasynth.moderation import read_kappa, read_topics
from moot.protocols.templates import fenced
from moot.protocols.text.agreement_language import agreement_share
from moot.protocols.text.chunking import chunks_of
from moot.protocols.text.labels import canonical_label, read_label
from moot.protocols.text.numbers import stated_number
from moot.protocols.text.sentences import split_sentences
from moot.protocols.verdict_words import mask_verdict_words

for _found in pkgutil.walk_packages(moot.protocols.__path__, "moot.protocols."):
    importlib.import_module(_found.name)  # so that every model of a reply is known

SHAPES = {
    "dots": ".",
    "dashes": "-",
    "blanks": " ",
    "digits": "1",
    "brackets": "[",
    "objects": '{"a":',
    "fences": "``` ",
    "tags": "</",
    "words": "not no longer ",
    "lines": "a\n",
    "sentences": "A is 5. ",
    "shares": "5%",
    "a list": "1. ",
    "combining marks": "\u0301\u0323",
    "labels": "No, not Yes or ",
    "quoted ends": '."',
    "short sentences": "A. ) ",
    "flawed objects": "{'answer': 'Yes', 'reasoning': 'r', 'confidence': 1}",
    "headings": "# a\nAb\n- a\n\n",
}


def _answer(text: str) -> None:
    parse_reply(f'{{"answer": "{text}", "reasoning": "r", "confidence": 0.5}}', Position, ("Yes", "No"))


def _every_field(text: str) -> None:
    """The text in each field of each model of a reply, alone and in a list."""
    said = json.dumps(text)
    for model in _models(Reply):
        for value in (said, f"[{said}]"):
            fields = ",".join(f'"{name}":{value}' for name in model.model_fields)
            with suppress(InvalidReply):
                parse_reply(f"{{{fields}}}", model)


def _models(base: type[Reply]) -> Iterator[type[Reply]]:
    for model in base.__subclasses__():
        yield model
        yield from _models(model)


READERS: dict[str, Callable[[str], object]] = {
    "every field": _every_field,
    "a stated number": stated_number,
    "conflicts": lambda text: first_difference(*[sentences_of(text)] * 2),
    "chunks": chunks_of,
    "a dial": read_kappa,
    "a reply": lambda text: parse_reply(text, Position),
    "a torn reply": lambda text: parse_reply(f'{{"answer": "Yes", "reasoning": {text}', Position),
    "a fenced reply": lambda text: parse_reply(f"```{text}", Position),
    "an answer": _answer,
    "a label": lambda text: canonical_label(text, ("Yes", "No"), (), ()),
    "the start of an answer": lambda text: read_label(f"No{text}", ("Yes", "No", "No, not"), (), ()),
    "verdict words": mask_verdict_words,
    "agreement": lambda text: agreement_share([text]),
    "quantities": marked,
    "a stance": relation_of,
    "wording": wording_of,
    "repeats": lambda text: first_alike([text, text]),
    "topics": read_topics,
    "sentences": split_sentences,
    "a number": whole_number,
    "a fence": lambda text: fenced(text, "document"),
}


@pytest.mark.timeout(60)  # the slowest takes a second; one that is quadratic takes minutes
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("characters", [2**14, pytest.param(2**17, marks=pytest.mark.slow)])
def test_every_reader_ends_in_time_that_grows_with_the_length(reader: str, characters: int) -> None:
    for shape in SHAPES.values():
        with suppress(InvalidReply, ValueError):
            READERS[reader](f"5{shape * (characters // len(shape))} {{")


@pytest.mark.timeout(30)  # milliseconds; mended, they take half a minute each
@pytest.mark.parametrize("opened", ["{", "[", "(", "[{", "{ ", '{"a":', '{"answer":['])
@pytest.mark.parametrize("levels", [150, 3_000, 100_000])
def test_brackets_that_never_close_are_not_mended(opened: str, levels: int) -> None:
    for text in (opened * levels, '{"answer": ' + opened * levels, opened * levels + "1" + "]" * levels):
        with pytest.raises(InvalidReply):
            parse_reply(text, Position, ("Yes", "No"))


def test_many_brackets_that_close_are_mended() -> None:
    text = '{"answer": "Yes", "reasoning": "' + "f(x) [1] {2} " * 200 + '", "confidence": 0.5,'
    assert parse_reply(text, Position, ("Yes", "No")).answer == "Yes"
