"""Every built-in protocol in its main configurations, as one protocol; and cases for it.

SELENE, EVINCE and the baselines accept any question of two labels (`SETTINGS`); the others have their own cases
(`OTHERS`).
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any

from msgspec import structs
from small_runs import same_model_roles

from moot.actors.agent.roles import RoleBinding
from moot.actors.simulated.answer_key import AnswerKey
from moot.protocols.base import DebateProtocol
from moot.protocols.case import Case, LabelledCase
from moot.protocols.floor import Floor
from moot.protocols.messages import Verdict
from moot.protocols.registry import make_protocol
from moot.protocols.tasks import open_task

SETTINGS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "default": ("selene", {}),
    "printed": ("selene", {"gate.intrinsic": "printed", "judging.weighting": "printed"}),
    "without-intrinsic": ("selene", {"gate.intrinsic": "none"}),
    "resampled": ("selene", {"gate.intrinsic": "resampled", "gate.resamples": 3}),
    "paraphrased": ("selene", {"judging.variants": "paraphrase"}),
    "per-variant": ("selene", {"judging.repeats": 2, "judging.weighting": "per-variant", "gate.tau_d": 0.1}),
    "every-agent": ("selene", {"judging.candidates": "every-agent", "judging.show_rationale": True}),
    "both-branches": ("selene", {"both_branches": True, "gate.embed_rationale": False}),
    "audited": ("selene", {"audit_skipped": 0.5, "audit_judging": True}),
    "gate-off": ("selene", {"gate.tau_d": None, "gate.tau_m": None, "gate.tau_p": None, "agents": 4}),
    "reasoning-first": ("selene", {"answer_first": False, "debate.show_confidence": True}),
    "always-debate": ("always-debate", {"debate.max_rounds": 2}),
    "single-agent": ("single-agent", {}),
    "majority-vote": ("majority-vote", {"vote.samples": 2}),
    "evince": ("evince", {"crit.max_depth": 1}),
    "evince-three": ("evince", {"agents": 3, "gate": False, "history": "distribution", "follow_ups": "always"}),
    "evince-ensemble": ("evince", {"schedule": "ensemble", "ground": "embedding"}),
}


OTHERS: Mapping[str, tuple[str, Mapping[str, Any], tuple[str, ...]]] = {
    "socrasynth": ("socrasynth", {"versus_qa": True, "crit_topics": True, "topics.count": 2, "max_rounds": 2}, ()),
    "auditor": ("constructor-auditor", {"judge.passes": 2}, ("sample", "sample-essays", "sample-problems")),
    "replies": ("judge-panel", {"passes": 2}, ("sample-replies",)),
    "claims": ("ceda", {}, ("sample-claims",)),
}
"""Protocol, settings, and the tasks of its cases; without tasks, generated cases."""


class ManySettings(DebateProtocol):
    """Protocol whose cases name their settings in the title."""

    roles: tuple[str, ...] = ("agent", "judge")
    name = "many-settings"
    needs_logprobs = True

    def __init__(self) -> None:
        self._protocols: dict[str, DebateProtocol] = {
            name: make_protocol(protocol, settings) for name, (protocol, settings) in SETTINGS.items()
        }

    async def run(self, case: Case, floor: Floor) -> Verdict:
        """Debate one case."""
        return await self._protocols[case.title].run(case, floor)


class EveryProtocol(ManySettings):
    """`ManySettings` with the protocols of `OTHERS`."""

    roles = ("agent", "judge", "moderator", "constructor", "auditor", "synthesizer", "debater", "vision")
    name = "every-protocol"

    def __init__(self) -> None:
        super().__init__()
        self._protocols |= {name: make_protocol(protocol, settings) for name, (protocol, settings, _) in OTHERS.items()}


def roles_of_all() -> dict[str, list[RoleBinding]]:
    """Bindings of `EveryProtocol`: of each role as many members as any protocol asks, on the simulated model."""
    (agent,), (judge,) = same_model_roles("simulated", max_tokens=2000).values()
    alone = {name: [agent] for name in ("moderator", "constructor", "auditor", "synthesizer", "vision")}
    return {"agent": [agent], "judge": [judge], "debater": [agent, agent], **alone}


def other_cases(each: int) -> list[LabelledCase]:
    """A number of cases for each of `OTHERS`; of several tasks, that number in total."""
    cases = []
    for name, (_, _, tasks) in OTHERS.items():
        found = [item for task in tasks for item in islice(open_task(task).cases(), each // len(tasks))]
        for number, item in enumerate(found or made_cases(each, name, start=500)):
            case = structs.replace(item.case, id=f"{name}-{number}", title=name)
            cases.append(LabelledCase(case, item.index, item.gold, reference=item.reference))
    return cases


_BIRDS = ("penguins", "ostriches", "swifts", "herons", "owls", "puffins", "wrens", "kiwis")
_DOING = ("fly over the sea", "swim under ice", "sleep in flight", "dig their nests", "eat salt", "dive for fish")


def made_cases(count: int, title: str, start: int = 0) -> list[LabelledCase]:
    """Yes/no questions with passages, all different."""
    cases = []
    for i in range(start, start + count):
        bird, doing = _BIRDS[i % len(_BIRDS)], _DOING[i // len(_BIRDS) % len(_DOING)]
        question = f"can {bird} of island {i} {doing}"
        passage = (
            f"The {bird} of island {i} were counted in {1900 + i % 120}. Some of them {doing}; others were never "
            f"seen to {_DOING[(i + 1) % len(_DOING)]}. Their keepers wrote {i * 7} notes, all on thin paper."
        )
        case = Case(id=f"{title}-{i}", question=question, title=title, passage=passage, labels=("Yes", "No"))
        cases.append(LabelledCase(case, i, "Yes" if i % 3 else "No"))
    return cases


def key_of(cases: list[LabelledCase]) -> dict[int, str]:
    """`RunSpec.key` of cases in memory."""
    return AnswerKey.from_cases(cases).slots
