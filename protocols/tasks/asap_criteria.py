"""Traits of ASAP's essay sets 7 and 8: assignments, and meaning of the scores.

The wording is moot's own, short, based on the public scoring guides. The other six sets have no trait scores.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from moot.protocols.case import Criterion
from moot.protocols.tasks.essays import criteria_of


@dataclass(frozen=True)
class EssaySet:
    """Essay set.

    Attributes:
        criteria: its traits, in the order of the columns `rater1_trait1`, `rater1_trait2` ...
        raters: most raters of a trait.
    """

    criteria: tuple[Criterion, ...]
    raters: int


_PATIENCE = "Write about patience: a story about a time when you or somebody else was patient, or one of your own kind."
_LAUGHTER = "Tell a true story in which laughter was one element or part."

_SET_7 = {
    "Ideas": (
        "a story clearly focused on the topic, thoroughly developed with specific, relevant details",
        "somewhat focused on the topic, developed with a mix of specific and general details",
        "barely focused on the topic, developed with few or general details",
        "not focused on the task, or not developed",
    ),
    "Organization": (
        "ideas and events are clearly connected and logically sequenced",
        "ideas and events are in a logical sequence",
        "the sequence is weak and connections are often missing",
        "no organization can be seen",
    ),
    "Style": (
        "a command of language: well-chosen words and compelling sentences serve purpose and audience",
        "adequate words and sentences that serve purpose and audience",
        "limited words and sentences that serve purpose and audience only in part",
        "words and sentences that do not serve purpose and audience",
    ),
    "Conventions": (
        "grammar, usage, spelling, capitals and punctuation are consistently right for the seventh grade",
        "they are mostly right for the seventh grade",
        "they are right only now and then",
        "they are rarely right",
    ),
}

_SET_8 = {
    "Ideas and Content": (
        "exceptionally clear, focused and interesting, with strong, carefully chosen support throughout",
        "clear, focused and interesting, with relevant, carefully chosen details",
        "clear and focused, with relevant details that may be general or few in places",
        "the main idea can be told, but it is obvious, broad or simply developed",
        "the main idea is somewhat unclear, or there are very few details",
        "no central idea or purpose",
    ),
    "Organization": (
        "an order that strengthens the idea and moves the reader along; strong beginning, close and transitions",
        "a strong order that fits the idea, with an inviting beginning and a satisfying close",
        "clear and coherent, but the order may be formulaic",
        "an attempt at an order, which is inconsistent or skeletal",
        "occasional order only; beginning or end is missing or very weak",
        "no coherent order",
    ),
    "Voice": (
        "a voice exceptionally right for topic and audience; the writer is present and deeply engaged",
        "a voice right for topic and audience, with a strong sense of the writer",
        "a voice is present, and the writer mostly engaged",
        "a voice comes and goes, or does not suit topic and audience",
        "little sense of the writer; flat or mechanical",
        "no voice: lifeless, or out of place",
    ),
    "Word Choice": (
        "words that are exact, rich and striking throughout, and fresh where they are figurative",
        "a wide range of exact, natural words that carry the message with interest",
        "words that do their work; some are varied and precise",
        "ordinary words, with little variety or some misuse",
        "monotonous, misused or vague words that weaken the message",
        "so few or so many misused words that the meaning is hidden",
    ),
    "Sentence Fluency": (
        "an effective flow and rhythm throughout; sentences vary greatly and invite reading aloud",
        "an easy flow and rhythm; sentences are varied and well built",
        "sentences flow and some vary, though not throughout",
        "more mechanical than fluent, with awkward or repeated patterns",
        "choppy, rambling or awkward sentences that slow the reader down",
        "sentences that are hard to follow or to read aloud",
    ),
    "Conventions": (
        "exceptionally strong control of spelling, grammar, capitals, punctuation and paragraphs; hardly an error",
        "strong control; errors are few and minor",
        "control; minor errors that do not get in the way",
        "limited control; errors begin to get in the way",
        "little control; frequent, serious errors",
        "so many errors that the text is very hard to read",
    ),
}


ESSAY_SETS: Mapping[int, EssaySet] = MappingProxyType(
    {
        7: EssaySet(criteria_of(_SET_7, 3, _PATIENCE), raters=2),
        8: EssaySet(criteria_of(_SET_8, 6, _LAUGHTER), raters=3),
    }
)
"""Sets with trait scores, by their number in the file."""
