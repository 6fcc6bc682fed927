"""What a run would cost, before anything is paid: cases, calls and a bound on tokens."""

from __future__ import annotations

import math
from dataclasses import dataclass

from moot.deploy.running.prepare import Prepared
from moot.deploy.running.recorded import reusable_replies
from moot.protocols.case import Case, case_slots
from moot.protocols.selene.opening import TEMPLATE as OPENING
from moot.protocols.selene.protocol import Selene
from moot.protocols.selene.settings import SeleneSettings

_CHARACTERS_PER_TOKEN = 4


@dataclass(frozen=True)
class Calls:
    """Calls for one case by what they read: the case alone, or also what the agents said.

    Attributes:
        plain: openings, samples, judge passes.
        revisions: those that also read every agent's last reply.
    """

    plain: int
    revisions: int = 0

    def __add__(self, other: Calls) -> Calls:
        return Calls(self.plain + other.plain, self.revisions + other.revisions)

    @property
    def total(self) -> int:
        """All calls."""
        return self.plain + self.revisions


@dataclass(frozen=True)
class Plan:
    """A run's cost in advance, without retries and without second asks after an unreadable reply.

    Attributes:
        protocol: its name.
        cases: how many; None for a source that cannot be read twice.
        least, most: calls over all cases; None for a protocol whose steps are not known, or without `cases`.
        least_tokens, most_tokens: prompts at four characters per token, replies at their full length.
        reusable: replies of the other run that can answer equal asks; None without such a run. How many of them will
            is known only when the debates are held, so the other figures count every call.
    """

    protocol: str
    cases: int | None
    least: int | None
    most: int | None
    least_tokens: int | None
    most_tokens: int | None
    reusable: int | None = None

    def lines(self) -> list[str]:
        """The plan as text."""
        calls = "unknown: this protocol does not say" if self.cases is not None else "unknown until the cases are read"
        tokens = calls
        if self.least is not None and self.most is not None:
            calls = f"{self.least:,} to {self.most:,}"
            if self.cases:
                calls += f" ({self.least / self.cases:.4g} to {self.most / self.cases:.4g} a case)"
            tokens = f"at most about {self.most_tokens:,} (at least {self.least_tokens:,} if every debate is short)"
        reuse = [] if self.reusable is None else [f"reuse     {self.reusable:,} replies answer equal asks for nothing"]
        return [
            f"protocol  {self.protocol}",
            f"cases     {'unknown' if self.cases is None else f'{self.cases:,}'}",
            f"calls     {calls}",
            f"tokens    {tokens}",
            "          prompts at 4 characters a token, replies at full length; without retries and re-asks",
            *reuse,
            "dry run: nothing was asked, paid or written",
        ]


def plan(prepared: Prepared) -> Plan:
    """Count what a run would do; reads the task once more, asks nobody, writes nothing."""
    protocol, total = prepared.protocol, prepared.total
    reusable = None if prepared.reuse is None else reusable_replies(prepared.reuse)
    if not isinstance(protocol, Selene) or total is None:
        return Plan(protocol.name, total, None, None, None, None, reusable)
    judges = len(prepared.bindings.get("judge", ()))
    longest = max(member.max_tokens for member in prepared.members)
    agents = protocol.settings.agents
    least_calls = most_calls = least_tokens = most_tokens = 0
    for labelled in prepared.cases():
        least, most = calls_for(protocol.settings, labelled.case, judges)
        prompt = _prompt_tokens(prepared, labelled.case)
        least_calls += least.total
        most_calls += most.total
        least_tokens += least.total * prompt
        most_tokens += most.total * (prompt + longest) + most.revisions * agents * longest
    return Plan(protocol.name, total, least_calls, most_calls, least_tokens, most_tokens, reusable)


def calls_for(settings: SeleneSettings, case: Case, judges: int) -> tuple[Calls, Calls]:
    """The fewest and the most calls for one case, as long as every reply can be read."""
    agents, gate = settings.agents, settings.gate
    opening = Calls(agents * settings.vote.samples)
    if gate.intrinsic == "resampled" and gate.uses_intrinsic:
        opening += Calls(agents * gate.resamples)
    judged = judges if settings.judging.method != "none" else 0
    few, many = _judging(settings, 1, judged), _judging(settings, _answers(settings, case), judged)
    skip = Calls(judged)
    short, long = Calls(few, agents), Calls(many, agents * settings.debate.max_rounds)
    if gate.when == "never":
        least, most = Calls(few), Calls(many)
    elif gate.when == "always":
        least, most = short, long
    else:
        least, most = skip, long
        if settings.audit_skipped > 0.0:
            most = skip + long
    if settings.both_branches:
        least, most = skip + short, skip + long
    audit = settings.judging.k * judges if settings.audit_judging else 0
    return opening + least + Calls(audit), opening + most + Calls(audit * _answers(settings, case))


def _answers(settings: SeleneSettings, case: Case) -> int:
    """The most candidates that a judge may see."""
    return settings.agents if case.labels is None else min(settings.agents, len(case.labels))


def _judging(settings: SeleneSettings, answers: int, judges: int) -> int:
    """Judge calls over so many distinct answers, paraphrases included."""
    judging = settings.judging
    candidates = settings.agents if judging.candidates == "every-agent" else answers
    if candidates == 1 or judging.method != "evidence-weighted":
        return candidates * judges
    paraphrases = judging.k if judging.variants == "paraphrase" and judges else 0
    return paraphrases + candidates * judging.k * judging.repeats * judges


def _prompt_tokens(prepared: Prepared, case: Case) -> int:
    messages = prepared.templates.render(OPENING, case_slots(case))
    return math.ceil(sum(len(message.content) for message in messages) / _CHARACTERS_PER_TOKEN)
