"""Constructor-auditor: an opening, a challenge, a synthesis; judges score how the first two were reasoned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from types import MappingProxyType
from typing import Any

from moot.protocols.base import CaseField, DebateProtocol
from moot.protocols.case import Case, Domain
from moot.protocols.constructor_auditor.domains import CASTS, domain_of, speaker_slots, synthesis_slots
from moot.protocols.constructor_auditor.events import ConstructorAuditorPayload, TextsRetrieved
from moot.protocols.constructor_auditor.replies import NumberSynthesis, Synthesis, synthesis_for
from moot.protocols.constructor_auditor.settings import ConstructorAuditorSettings
from moot.protocols.errors import AskFailed, CaseUnfit
from moot.protocols.floor import Floor, Request
from moot.protocols.messages import Failure, Turn, Verdict
from moot.protocols.nearest_texts import nearest_texts
from moot.protocols.replies import FreeText
from moot.protocols.rubrics.events import ReplyAssessed
from moot.protocols.rubrics.panel import AssessedReply, RubricPanel, note_assessments
from moot.protocols.rubrics.rubric import shipped_rubric
from moot.protocols.rubrics.sheet import score_sheet_type

CHALLENGE = "constructor_auditor/auditor"
SYNTHESIS = "constructor_auditor/synthesizer"

OPENING = "constructor_auditor/constructor"
_REPLY_TOKENS = {"constructor": 900, "auditor": 900, "synthesizer": 300, "judge": 500}


class ConstructorAuditor(DebateProtocol):
    """One argues, one challenges, one answers; judges score the reasoning of the first two, whatever the answer.

    Sources: "The Confident Liar" and "Early-Token Confidence".

    Args:
        settings: see `ConstructorAuditorSettings`.

    Attributes:
        roles: `constructor`, `auditor`, `synthesizer`, and `judge` unless nothing is judged.
                judges_see_pictures: whether there are judges; each is sent what the speaker was, pictures included.
        reads_documents: it searches the run's library for questions that come without a passage.
        temperatures, top_ps: the speakers sample from the model's own distribution as in "Early-Token Confidence",
            section 4.1; a judge's one pass is at 0.
    """

    name = "constructor-auditor"
    Settings = ConstructorAuditorSettings
    settings: ConstructorAuditorSettings
    sample = "sample-problems"
    speakers: tuple[str, ...] = ("constructor", "auditor")
    judges_apart = True
    prompt_folders = frozenset({"constructor_auditor", "rubric"})
    reads = frozenset[CaseField]({"passage", "choices", "documents", "images"})
    reads_documents = True
    most_members = MappingProxyType({"constructor": 1, "auditor": 1, "synthesizer": 1})
    without_logprobs = (
        "`--set logprobs=false` continues without them: such replies are counted and left out of the signal analysis"
    )
    without_json = "`--set judge.when=never` asks no judge"

    def __init__(self, settings: ConstructorAuditorSettings | None = None) -> None:
        self.settings = settings if settings is not None else ConstructorAuditorSettings()
        judged = self.settings.judge.when == "always"
        self.roles = (*self.speakers, "synthesizer", *(("judge",) if judged else ()))
        self.judges_see_pictures = judged
        self.needs_logprobs = self.settings.logprobs
        self.replies = {
            "synthesizer": (Synthesis, NumberSynthesis),
            "judge": (score_sheet_type(shipped_rubric("reasoning")),),
        }
        self.reply_tokens = {role: _REPLY_TOKENS[role] for role in self.roles}
        once = judged and self.settings.judge.passes == 1
        self.temperatures = dict.fromkeys(self.speakers, 1.0) | ({"judge": 0.0} if once else {})
        self.top_ps = dict.fromkeys(self.speakers, 1.0)

    async def run(self, case: Case, floor: Floor) -> Verdict:
        """Debate one case.

        Notes an event `assessment` for the opening and for the challenge, if they are judged, and `retrieved` where
        texts were found for a question without a passage.

        Raises:
            AskFailed: no opening, challenge or synthesis came. Judgments may be missing.
            CaseUnfit: a text is to be scored, but the scale is unknown.
        """
        domain = domain_of(case)
        found = await self._found(case, domain, floor)
        slots = speaker_slots(case, domain, self.settings, found)
        opening = await floor.ask("constructor/0", OPENING, slots, reply=FreeText, path="opening", images=case.images)
        challenged = slots | {"argument": opening.reply.text}
        challenge = await floor.ask(
            "auditor/0", CHALLENGE, challenged, reply=FreeText, path="challenge", images=case.images
        )
        panel = await self._panel(floor, domain, opening, challenge)
        requests: list[Request[Any]] = [_synthesis(case, domain, found, opening, challenge)]
        turns = await floor.ask_all([*requests, *(panel.requests() if panel else [])])
        assessed = panel.read(turns[1:]) if panel else {}
        note_assessments(floor, assessed)
        answered = turns[0]
        if isinstance(answered, Failure):
            raise AskFailed(answered.path, answered.kind, answered.message)
        return _verdict(domain, answered, assessed)

    async def _found(self, case: Case, domain: Domain, floor: Floor) -> tuple[str, ...]:
        """The texts nearest to a question that is to be answered and comes without a passage."""
        if not self._searches_for(case, domain):
            return ()
        nearest = await nearest_texts(case.question, case.documents, floor, self.settings.passages)
        if nearest.texts:
            floor.note(TextsRetrieved(**nearest.record(), path="retrieved"))
        return nearest.texts

    def _searches_for(self, case: Case, domain: Domain) -> bool:
        return domain == "factual QA" and not case.passage and self.settings.passages > 0

    def reads_of(self, case: Case) -> AbstractSet[CaseField]:
        """As `reads`; documents only where texts are retrieved."""
        try:
            searches = self._searches_for(case, domain_of(case))
        except CaseUnfit:  # as the debate says
            searches = False
        return self.reads if searches else self.reads - {"documents"}

    async def _panel(
        self, floor: Floor, domain: Domain, opening: Turn[FreeText], challenge: Turn[FreeText]
    ) -> RubricPanel | None:
        if self.settings.judge.when == "never":
            return None
        cast = CASTS[domain]
        replies = {
            role: AssessedReply(
                path=turn.path,
                role=f"{name} ({role})",
                domain=domain,
                sent=await floor.sent(turn),
                reply=turn.reply.text,
            )
            for role, name, turn in (
                ("constructor", cast.constructor, opening),
                ("auditor", cast.auditor, challenge),
            )
        }
        return RubricPanel(shipped_rubric("reasoning"), replies, floor.panel("judge"), self.settings.judge.passes)


def _synthesis(
    case: Case, domain: Domain, found: Sequence[str], opening: Turn[FreeText], challenge: Turn[FreeText]
) -> Request[Synthesis]:
    slots = synthesis_slots(case, domain, found) | {"argument": opening.reply.text, "challenge": challenge.reply.text}
    return Request("synthesizer/0", SYNTHESIS, slots, synthesis_for(case, domain), "synthesis")


def _verdict(domain: Domain, answered: Turn[Synthesis], assessed: Mapping[str, ReplyAssessed]) -> Verdict:
    raised = {f"critical-{role}": bool(found.flagged) for role, found in assessed.items()}
    raised["judges-missing"] = any(found.missing for found in assessed.values())
    payload = ConstructorAuditorPayload(domain=domain)
    if assessed:
        quality = {role: found.quality for role, found in assessed.items()}
        flagged = {role: found.flagged for role, found in assessed.items()}
        payload = payload.model_copy(update={"quality": quality, "flagged": flagged})
    return Verdict(
        answer=answered.answer,
        how="synthesis",
        confidence=None if answered.intrinsic is None else answered.intrinsic.normalised,
        rounds=1,
        flags=tuple(flag for flag, holds in raised.items() if holds),
        payload=payload.model_dump(exclude_unset=True),
    )
