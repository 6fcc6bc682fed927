"""Reply ids stand in fingerprints of records: each that was ever given finds its type, and the type gives it back."""

from __future__ import annotations

import pytest

from moot.protocols.reply_ids import load_reply, reply_id

GIVEN = [
    "moot.actors.outcomes:DecisionReply",
    "moot.protocols.ceda.context_reply:ContextReply",
    "moot.protocols.ceda.context_reply:OneItemReply",
    "moot.protocols.ceda.replies:JudgeReply",
    "moot.protocols.ceda.replies:MessageReply",
    "moot.protocols.constructor_auditor.replies:NumberSynthesis",
    "moot.protocols.constructor_auditor.replies:Synthesis",
    "moot.protocols.crit.replies:Argument",
    "moot.protocols.crit.replies:Reading",
    "moot.protocols.distribution:Likelihood",
    "moot.protocols.distribution:Predicted",
    "moot.protocols.evince.protocol:FollowUps",
    "moot.protocols.evince.standing:Argued",
    "moot.protocols.evince.standing:Estimate",
    "moot.protocols.evince.standing:Prediction",
    "moot.protocols.evince.standing:ReasonedEstimate",
    "moot.protocols.evince.standing:ReasonedPrediction",
    "moot.protocols.evince.standing:Rebutting",
    "moot.protocols.marks:Marked",
    "moot.protocols.replies:FreeText",
    "moot.protocols.replies:Position",
    "moot.protocols.replies:ReasonedPosition",
    "moot.protocols.replies:Score",
    "moot.protocols.rubrics.mark_sheet:MarkSheet",
    "moot.protocols.selene.evidence:Paraphrase",
    "moot.protocols.socrasynth.replies:Agenda",
    "moot.protocols.socrasynth.replies:AgendaItem",
    "moot.protocols.socrasynth.replies:Amendment",
    "moot.protocols.socrasynth.replies:AnswerComparison",
    "moot.protocols.socrasynth.replies:Answered",
    "moot.protocols.socrasynth.replies:Balance",
    "moot.protocols.socrasynth.replies:Closing",
    "moot.protocols.socrasynth.replies:Comparison",
    "moot.protocols.socrasynth.replies:Consent",
    "moot.protocols.socrasynth.replies:Draft",
    "moot.protocols.socrasynth.replies:LabelledAmendment",
    "moot.protocols.socrasynth.replies:LabelledDraft",
    "moot.protocols.socrasynth.replies:LabelledOpening",
    "moot.protocols.socrasynth.replies:LastWord",
    "moot.protocols.socrasynth.replies:Opening",
    "moot.protocols.socrasynth.replies:SingleAnswer",
    "moot.protocols.socrasynth.replies:Speech",
    "moot.protocols.socrasynth.replies:Theme",
    "moot.protocols.socrasynth.replies:Themes",
    "moot.protocols.socrasynth.replies:TopicAddition",
    "moot.protocols.socrasynth.replies:TopicArgument",
    "moot.protocols.socrasynth.replies:TopicComparison",
    "moot.protocols.socrasynth.replies:TopicMarks",
    "moot.protocols.socrasynth.replies:TopicStatement",
    "moot.protocols.socrasynth.replies:WholeComparison",
]
"""Never to be changed; a reply type that moves gets a line in `MOVED`."""


@pytest.mark.parametrize("given", GIVEN)
def test_an_id_finds_its_type_wherever_that_is_now(given: str) -> None:
    assert reply_id(load_reply(given)) == given
