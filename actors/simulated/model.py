"""Simulated model: a stochastic model that debates, judges and paraphrases without a network or weights.

It is for testing, for planning (how many calls and tokens will a run take?) and for teaching how a protocol works. It
supports NO conclusion about real models: its accuracy is a setting, its gain from a debate is built in, its judges
count words, and its hallucinations are planted. A comparison of protocols on it compares their costs and plumbing,
never their merit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any
from urllib.parse import unquote

import msgspec

from moot.actors.models.interface import Capabilities, ModelError, ModelReply, ReplySchema
from moot.actors.models.off_loop import off_loop_if_long
from moot.actors.models.openai_wire import request_id
from moot.actors.simulated import answers, claims, judges, subject
from moot.actors.simulated.answer_key import AnswerKey
from moot.actors.simulated.argument import write_argument
from moot.actors.simulated.form_filler import fill
from moot.actors.simulated.judges import JUDGED
from moot.actors.simulated.prompt import ParsedPrompt, parse_prompt
from moot.actors.simulated.settings import SimulatedSettings
from moot.actors.simulated.tokens import draw_logprobs, split_draft
from moot.actors.simulated.turn import DraftSignals, ReplyDraft, SimulatedTurn
from moot.actors.simulated.vision import (
    asks_for_description,
    asks_for_extraction,
    write_description,
    write_extraction,
)
from moot.actors.simulated.words import draw_reasoning, paraphrase
from moot.protocols.messages import Decoding, Message, Usage
from moot.protocols.seeds import call_digest

__all__ = ["MAX_ALTERNATIVES", "AnswerKey", "SimulatedModel", "SimulatedSettings"]

MAX_ALTERNATIVES = 20

_PROSE: tuple[tuple[Callable[[ParsedPrompt], bool], Callable[[SimulatedTurn], ReplyDraft]], ...] = (
    (lambda prompt: prompt.argues, write_argument),
    (asks_for_description, write_description),
    (asks_for_extraction, write_extraction),
)
"""Writers of replies without JSON: the first whose predicate matches the prompt; else a few sentences on the
question."""

_SIGNALS: tuple[tuple[frozenset[str], Callable[[SimulatedTurn], DraftSignals]], ...] = (
    (frozenset({"says", "text", "stance"}), claims.message),
    (frozenset({"distribution"}), answers.distribution),
    (frozenset({"answer", "rationale"}), answers.synthesis),
    *((frozenset({key}), subject.side) for key in ("declined", "points", "consents", "presented_all", "balanced")),
    (frozenset({"answer"}), answers.answer),
    (frozenset({"support", "score"}), judges.support),
    (frozenset({"statements"}), claims.context),
    (frozenset({"reasons", "rivals"}), judges.reading),
    (frozenset({"sentences"}), paraphrase),
    (frozenset({"title", "description"}), subject.agenda),
    (frozenset({"summary", "verdict"}), claims.ruling),
    (frozenset({"first", "second"}), judges.comparison),
)
"""Handlers of fields with a meaning: the first whose names all occur in the prompt's form."""

_PLAIN_WORDS = 40


class SimulatedModel:
    """Simulated `Model`, with replies drawn from a stable hash.

    A reply is a function of the seed, the rendered messages, the step key and whether the temperature is 0, and of
    nothing else: equal calls give equal replies in any process, and any change of the history another one. `max_tokens`
    only truncates the reply, and requesting log-probabilities does not change its text.

    Args:
        settings: behaviour of agents and judges.
        seed: the run's seed.
        key: the answer key; None makes agents answer at random. Judges never use it.
        name: the model's name as the user wrote it, settings included.
    """

    capabilities = Capabilities(
        max_alternatives=MAX_ALTERNATIVES,
        logprob_stage="before",
        images=True,
        seeds=True,
        simulated=True,
        in_process=True,
    )

    def __init__(self, settings: SimulatedSettings, seed: int, key: AnswerKey | None, name: str = "simulated") -> None:
        self.name = name
        self._settings, self._seed, self._key = settings, seed, key

    async def complete(
        self, messages: Sequence[Message], decoding: Decoding, *, step_key: str, schema: ReplySchema | None = None
    ) -> ModelReply:
        """Complete one conversation, after the configured latency; see `reply`.

        The step key is normalised as for an HTTP header, so that replies over HTTP are equal. The prompt determines the
        form of the reply; a `schema` only counts where the prompt has no known form.
        """
        if self._settings.latency_ms:
            await asyncio.sleep(self._settings.latency_ms / 1000.0)
        step_key = unquote(request_id(step_key))
        constraint = None if schema is None else msgspec.json.decode(schema.body)
        texts = [message.content for message in messages]
        return await off_loop_if_long(texts, self.reply, messages, decoding, step_key, constraint)

    def reply(
        self,
        messages: Sequence[Message],
        decoding: Decoding,
        step_key: str,
        schema: Mapping[str, Any] | None = None,
    ) -> ModelReply:
        """Generate one reply of at most `decoding.max_tokens` tokens; a longer one is truncated, with finish reason
        `length`.

        Args:
            schema: form of the reply to a prompt without a known one; None: prose.

        Raises:
            ModelError: `request`, when too many alternatives are requested.
        """
        alternatives = decoding.top_logprobs
        if alternatives is not None and not 0 <= alternatives <= MAX_ALTERNATIVES:
            raise ModelError("request", f"top_logprobs is {alternatives}, expected 0 to {MAX_ALTERNATIVES}")
        greedy = decoding.temperature == 0
        digest = call_digest(self._seed, messages, step_key, greedy)
        random = Random(int.from_bytes(digest, "little"))
        turn = SimulatedTurn(parse_prompt(messages), random, greedy, self._settings, self._seed, self._key)
        draft = _draft(turn, schema)
        split = split_draft(draft)
        length = min(len(split.tokens), decoding.max_tokens)
        cut = length < len(split.tokens)
        logprobs = None
        if alternatives is not None:
            logprobs = draw_logprobs(draft, split, length, alternatives, digest)
        return ModelReply(
            text="".join(split.tokens[:length]) if cut else draft.text,
            finish_reason="length" if cut else "stop",
            usage=Usage(_prompt_tokens(messages), length),
            tokens=logprobs,
        )

    async def check(self) -> None:
        """Always succeeds."""

    async def close(self) -> None:
        """No resources to release."""


def _draft(turn: SimulatedTurn, schema: Mapping[str, Any] | None) -> ReplyDraft:
    """Draft of the reply: by a handler of the form's fields, else by the schema, the form or in prose."""
    prompt, names = turn.prompt, turn.prompt.names
    drawn = next((draw for needed, draw in _SIGNALS if needed <= names), None)
    if prompt.tagged(JUDGED):  # the keys of a score sheet are those of a rubric: any names
        drawn = judges.marks
    if prompt.form and drawn:
        return fill(turn, prompt.form, drawn(turn))
    if prose := next((write for fits, write in _PROSE if fits(prompt)), None):
        return prose(turn)
    form = schema or prompt.form
    return fill(turn, form, DraftSignals()) if form else ReplyDraft(draw_reasoning(turn, "this").written(_PLAIN_WORDS))


def _prompt_tokens(messages: Sequence[Message]) -> int:
    return sum(len(message.content) // 4 + 1 for message in messages)
