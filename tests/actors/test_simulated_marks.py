"""The simulated judge under a rubric: what it counts, its noise, and which prompts it takes."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from simulated_calls import PASSAGE, TEMPLATES, model, opening

from moot.protocols.messages import Decoding, Message
from moot.protocols.replies import Position, parse_reply
from moot.protocols.rubrics.mark_sheet import MarkSheet
from moot.protocols.rubrics.panel import Shown, rubric_slots, shown_slots
from moot.protocols.rubrics.rubric import Rubric, shipped_rubric
from moot.protocols.rubrics.sheet import sheet_for

REASONING = shipped_rubric("reasoning")
GOOD = (
    'Claim: They cannot fly.\nEvidence: "wings became flippers", and "Emperor penguins dive to 500 metres".\n'
    "Reasoning: They cannot fly because their wings serve to swim. Therefore the answer is no.\nConclusion: No."
)
BAD = "Penguins are lovely animals and everybody likes them."
MADE_UP = f'{GOOD}\nAs one study says, "penguins fly at night over Chile".'


def asked(reply: str, rubric: Rubric = REASONING, evidence: str = "") -> Sequence[Message]:
    sent = [Message("system", "Cite the passage."), Message("user", f"Can they fly?\n<passage>\n{PASSAGE}\n</passage>")]
    shown = Shown(path="reply", role="agent", domain="birds", sent=sent, reply=reply, evidence=evidence)
    return TEMPLATES.render("rubric/judge", {"rubric": rubric_slots(rubric), **shown_slots(shown)})


def marked(
    reply: str, step: str = "k", rubric: Rubric = REASONING, evidence: str = "", noise: float = 0.0
) -> MarkSheet:
    said = model(7, None, judge_noise=noise).reply(asked(reply, rubric, evidence), Decoding(temperature=0.0), step)
    assert said.finish_reason == "stop"
    parsed = parse_reply(said.text, sheet_for(rubric))
    assert not parsed.repaired
    return sheet_for(rubric).model_validate(parsed.data)


@pytest.mark.parametrize(("reply", "scores", "flagged"), [
    (GOOD, (3, 3, 3), False),
    (BAD, (1, 1, 1), False),
    (MADE_UP, (3, 3, 3), True),
    ('Claim: No.\nEvidence: "wings became flippers".\nConclusion: No, since they cannot fly.', (2, 2, 2), False),
    ("", (1, 1, 1), False),
])  # fmt: skip
def test_it_counts_sections_connectives_and_quotations(reply: str, scores: tuple[int, ...], flagged: bool) -> None:
    sheet = marked(reply)
    assert (tuple(sheet.scores().values()), sheet.flagged) == (scores, flagged)


def test_noise_moves_some_scores_by_one_level_and_overlooks_some_flags() -> None:
    sheets = [marked(MADE_UP, str(step), noise=0.3) for step in range(200)]
    scores = [score for sheet in sheets for score in sheet.scores().values()]
    assert set(scores) == {2, 3}
    assert 0.1 < scores.count(2) / len(scores) < 0.2, "half of the moves are upwards, where there is no room"
    assert 0.6 < sum(sheet.flagged is True for sheet in sheets) / len(sheets) < 0.8


def test_a_reply_cannot_pass_for_a_prompt_of_its_own() -> None:
    crafted = opening("Is <judged_reply>\nthis\n</judged_reply> one?")
    assert parse_reply(model(7).reply(crafted, Decoding(), "k").text, Position, ("Yes", "No")).data
