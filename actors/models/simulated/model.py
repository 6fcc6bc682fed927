"""The simulated model: a random model that debates, judges and paraphrases without a network or weights.

It is for testing, for planning (how many calls and tokens will a run take?) and for teaching how a protocol works.
NOTHING may be concluded from it about real models: its accuracy is a setting, its gain from a debate is built in, its
judges count words, and its hallucinations are planted. A table of protocols run on it compares the protocols' costs and
plumbing, never their merit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any
from urllib.parse import unquote

import msgspec

from moot.actors.models.answer_key import AnswerKey
from moot.actors.models.interface import Capabilities, ModelError, ModelReply
from moot.actors.models.off_loop import off_loop_if_long
from moot.actors.models.openai_wire import request_id
from moot.actors.models.reply_schema import ReplySchema
from moot.actors.models.simulated.argument import write_argument
from moot.actors.models.simulated.belief import write_answer
from moot.actors.models.simulated.claims import SAYS, STANCE, TEXT, write_message
from moot.actors.models.simulated.context import write_context
from moot.actors.models.simulated.debater import (
    write_agenda,
    write_balance,
    write_closing,
    write_consent,
    write_last_word,
    write_proposal,
    write_speech,
    write_themes,
)
from moot.actors.models.simulated.draws import call_digest
from moot.actors.models.simulated.forecast import write_distribution, write_follow_ups
from moot.actors.models.simulated.judges import write_comparison, write_reading, write_support
from moot.actors.models.simulated.marks import JUDGED, write_marks
from moot.actors.models.simulated.prompt import SeenPrompt, read_prompt
from moot.actors.models.simulated.ruling import write_ruling
from moot.actors.models.simulated.settings import SimulatedSettings
from moot.actors.models.simulated.synthesis import write_synthesis
from moot.actors.models.simulated.text import write_held, write_paraphrase, write_plain
from moot.actors.models.simulated.tokens import draw_logprobs, split_draft
from moot.actors.models.simulated.turn import Turn, Writer
from moot.actors.models.simulated.vision import (
    asks_for_extraction,
    asks_to_look,
    write_description,
    write_extraction,
)
from moot.protocols.messages import Decoding, Message, Usage

__all__ = ["MAX_ALTERNATIVES", "AnswerKey", "SimulatedModel", "SimulatedSettings"]

MAX_ALTERNATIVES = 20

_ASKED: tuple[tuple[Callable[[SeenPrompt], bool], Writer], ...] = (
    # A sheet's keys are a rubric's, which may be anybody's; what tells it is that there is a reply to judge.
    (lambda prompt: bool(prompt.tagged(JUDGED)), write_marks),
    (lambda prompt: prompt.argues, write_argument),
    (asks_to_look, write_description),
    (asks_for_extraction, write_extraction),
)
"""What writes a reply that is not told by its form: the first row that fits the prompt."""

_FORMS: tuple[tuple[frozenset[str], Writer], ...] = (
    (frozenset({SAYS, TEXT, STANCE}), write_message),
    (frozenset({"distribution"}), write_distribution),
    (frozenset({"questions", "tests"}), write_follow_ups),
    (frozenset({"points", "questions"}), write_proposal),
    (frozenset({"answer", "rationale"}), write_synthesis),
    (frozenset({"answer"}), write_answer),
    (frozenset({"support", "score"}), write_support),
    (frozenset({"statements"}), write_context),
    (frozenset({"reasons", "rivals"}), write_reading),
    (frozenset({"sentences"}), write_paraphrase),
    (frozenset({"topic", "addition"}), write_last_word),
    (frozenset({"topic", "argument"}), write_speech),
    (frozenset({"topic", "statement"}), write_closing),
    (frozenset({"title", "description", "merges"}), write_agenda),
    (frozenset({"title", "description"}), write_themes),
    (frozenset({"consents"}), write_consent),
    (frozenset({"summary", "verdict"}), write_ruling),
    (frozenset({"first", "second"}), write_comparison),
    (frozenset({"balanced", "why"}), write_balance),
    (frozenset(), write_plain),
)
"""What writes any other: the first row whose keys are all in the form that the prompt asks for."""


class SimulatedModel:
    """A `Model` whose replies are drawn from a stable hash.

    A reply is a function of the seed, the messages as rendered, the step key and whether the temperature is
    0, and of nothing else: the same call gives the same reply in any process, and any change of the history
    another one. `max_tokens` only cuts it, and asking for log-probabilities does not change its text.

    Args:
        settings: how agents and judges behave.
        seed: the run's seed.
        key: the answer key; None lets agents answer at random. Judges never get it.
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
        self,
        messages: Sequence[Message],
        decoding: Decoding,
        *,
        step_key: str,
        schema: ReplySchema | None = None,
    ) -> ModelReply:
        """One reply, after the latency that is set; see `reply`.

        The step key is taken as a server would get it in a header, so that replies over HTTP are the same. What to
        write is read from the prompt; a `schema` only counts where that asks for no known form.
        """
        if self._settings.latency_ms:
            await asyncio.sleep(self._settings.latency_ms / 1000.0)
        step_key = unquote(request_id(step_key))
        held = None if schema is None else msgspec.json.decode(schema.body)
        texts = [message.content for message in messages]
        return await off_loop_if_long(texts, self.reply, messages, decoding, step_key, held)

    def reply(
        self,
        messages: Sequence[Message],
        decoding: Decoding,
        step_key: str,
        schema: Mapping[str, Any] | None = None,
    ) -> ModelReply:
        """One reply: at most `decoding.max_tokens` tokens; longer ones are cut and end with `length`.

        Args:
            schema: what a prompt without a known form is answered by; None: by prose.

        Raises:
            ModelError: `request`, when more alternatives are asked for than there are.
        """
        alternatives = decoding.top_logprobs
        if alternatives is not None and not 0 <= alternatives <= MAX_ALTERNATIVES:
            raise ModelError("request", f"top_logprobs is {alternatives}, expected 0 to {MAX_ALTERNATIVES}")
        greedy = decoding.temperature == 0
        digest = call_digest(self._seed, messages, step_key, greedy)
        prompt = read_prompt(messages)
        writer = _writer(prompt)
        random = Random(int.from_bytes(digest, "little"))
        turn = Turn(prompt, random, greedy, self._settings, self._seed, self._key)
        draft = write_held(schema) if writer is write_plain and schema is not None else writer(turn)
        split = split_draft(draft)
        kept = min(len(split.tokens), decoding.max_tokens)
        cut = kept < len(split.tokens)
        logprobs = None
        if alternatives is not None:
            logprobs = draw_logprobs(draft, split, kept, alternatives, digest)
        return ModelReply(
            text="".join(split.tokens[:kept]) if cut else draft.text,
            finish_reason="length" if cut else "stop",
            usage=Usage(_prompt_tokens(messages), kept),
            tokens=logprobs,
        )

    async def check(self) -> None:
        """It can always be used."""

    async def close(self) -> None:
        """It holds nothing."""


def _writer(prompt: SeenPrompt) -> Writer:
    asked = next((writer for fits, writer in _ASKED if fits(prompt)), None)
    keys = frozenset(prompt.form)
    return asked or next(writer for needed, writer in _FORMS if needed <= keys)


def _prompt_tokens(messages: Sequence[Message]) -> int:
    return sum(len(message.content) // 4 + 1 for message in messages)
