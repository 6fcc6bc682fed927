"""The simulated debaters and judges of a claim: as competent as set, moved, consistent, and without the key."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Any, ClassVar

import pytest
from claim_prompts import COUNT, EVIDENCE, KEY, OPPOSITE, claim, debating, ruling
from hypothesis import given
from hypothesis import strategies as st
from simulated_calls import model

from moot.actors.models.answer_key import AnswerKey
from moot.actors.models.simulated.claim_prompt import sides_of
from moot.protocols.ceda.replies import MessageReply
from moot.protocols.ceda.stance import relation_of, stance_of
from moot.protocols.messages import Decoding
from moot.protocols.replies import parse_reply
from moot.protocols.templates import Templates

WARM, COLD = Decoding(temperature=0.6, max_tokens=100), Decoding(temperature=0.0, max_tokens=100)
SIDES = {"supports": 1, "denies": 0}


def right(number: int, side: str | None) -> bool:
    return side is not None and SIDES[side] == 1 - number % 2


def first_side(number: int, decoding: Decoding = WARM, **options: Any) -> str | None:
    """The side that a model takes in the first turn."""
    evidence = options.pop("evidence", ())
    key, step = options.pop("key", KEY), options.pop("step", 0)
    messages = debating(claim(number), evidence=evidence)
    return sides_of([model(7, key, **options).reply(messages, decoding, f"{number}/turn/1#{step}").text])[0]


def share_right(**options: Any) -> float:
    return sum(right(n, first_side(n, **options)) for n in range(COUNT)) / COUNT


def bound(share: float) -> float:
    """Four standard deviations of a share of `COUNT` independent draws."""
    return 4.0 * math.sqrt(share * (1.0 - share) / COUNT)


class TestDebater:
    @pytest.mark.parametrize("competence", [0.6, 0.78, 0.95])
    def test_the_competence_is_hit(self, competence: float) -> None:
        assert share_right(competence=competence) == pytest.approx(competence, abs=bound(competence))

    def test_without_a_key_it_is_at_chance(self) -> None:
        assert share_right(key=None) == pytest.approx(0.5, abs=bound(0.5))

    def test_the_evidence_pulls_a_little(self) -> None:
        """A tenth of the sides go where it leans; so the competence moves by a tenth towards chance."""
        steps = range(4)
        covered, bare = (
            [first_side(n, evidence=(text.format(claim(n)),), step=step) for n in range(COUNT) for step in steps]
            for text in ("{}", "Nothing of the kind.")
        )
        # four deviations of the difference of two counts are 0.058
        pulled = (covered.count("supports") - bare.count("supports")) / len(covered)
        assert pulled == pytest.approx(0.1, abs=0.058)
        for sides in (covered, bare):
            found = sum(right(place // 4, side) for place, side in enumerate(sides)) / len(sides)
            assert found == pytest.approx(0.9 * 0.78 + 0.05, abs=bound(0.75))

    def test_stubbornness_moves(self) -> None:
        """How many leave their side in turn 3 after being contradicted, the first message their own."""

        def leaving(stubbornness: float) -> int:
            said = ["AGREE. E1 bears it out.", "DENY. E2 does not carry it."]
            simulated = model(7, None, stubbornness=stubbornness)
            texts = [simulated.reply(debating(claim(n), said), WARM, str(n)).text for n in range(300)]
            return sum(sides_of([*said, text])[-1] == "denies" for text in texts)

        yielding, middling, stubborn = (leaving(each) for each in (0.0, 0.5, 1.0))
        assert stubborn < 0.1 * 300 < middling < yielding
        assert yielding > 0.5 * 300

    @pytest.mark.parametrize("unclear_rate", [0.0, 0.3])
    def test_words_are_true_to_the_side_over_long_debates(self, unclear_rate: float) -> None:
        """A stubborn debater who knows keeps to the truth for twenty turns, whatever the other said last."""
        settings: dict[str, float] = {"competence": 1.0, "stubbornness": 1.0, "unclear_rate": unclear_rate}
        for number in range(6):
            said: list[str] = []
            for turn in range(1, 21):
                known = not said or sides_of(said)[-1] is not None
                side = played(settings, KEY if turn % 2 else OPPOSITE, number, said, turn, COLD, known)
                assert side is None or right(number, side) == bool(turn % 2)
            assert unclear_rate or None not in sides_of(said)

    @pytest.mark.parametrize("said", [[], ["AGREE. E1 bears it out."], ["DENY. No.", "DENY. Yes."]])
    def test_its_first_word_is_as_probable_as_believed(self, said: list[str]) -> None:
        """At temperature 0 the likeliest word is the one that is said."""
        words = set()
        for number in range(40):
            decoding = Decoding(temperature=0.0, top_logprobs=5)
            tokens = model(7, KEY).reply(debating(claim(number), said), decoding, str(number)).tokens
            assert tokens is not None
            listed = dict(zip(tokens.alt_tokens[:5], tokens.alt_logprob[0].tolist(), strict=True))
            assert tokens.tokens[0] == max(listed, key=listed.__getitem__)
            # .985 of the mass is on the two words, .97 of that on this spelling
            assert math.exp(listed["AGREE"]) + math.exp(listed["DENY"]) == pytest.approx(0.985 * 0.97, abs=0.001)
            words.add(tokens.tokens[0])
        assert words == {"AGREE", "DENY"}


def played(
    settings: dict[str, float], key: AnswerKey, number: int, said: list[str], turn: int, decoding: Decoding, known: bool
) -> str | None:
    """One more message, put to those that were `said`; the side it takes."""
    messages = debating(claim(number), said, last_known=known)
    said.append(model(7, key, **settings).reply(messages, decoding, f"{number}/turn/{turn}").text)
    return sides_of(said)[-1]


class TestUnclear:
    def test_the_rate_is_recovered_and_adds_only(self) -> None:
        found = {}
        for rate in (0.0, 0.2, 0.6, 1.0):
            simulated = model(7, KEY, unclear_rate=rate)
            texts = [simulated.reply(debating(claim(n)), WARM, str(n)).text for n in range(COUNT)]
            found[rate] = {n for n, text in enumerate(texts) if sides_of([text]) == [None]}
            assert not any("AGREE" in texts[n] or "DENY" in texts[n] for n in found[rate])
            assert len(found[rate]) / COUNT == pytest.approx(rate, abs=bound(rate))
        assert found[0.0] < found[0.2] < found[0.6] < found[1.0]

    def test_all_other_messages_stay_what_they_were(self) -> None:
        for number in range(60):
            clear, some = (
                model(7, KEY, unclear_rate=rate).reply(debating(claim(number)), WARM, str(number)).text
                for rate in (0.0, 0.5)
            )
            assert some == clear or sides_of([some]) == [None]


@given(st.lists(st.sampled_from(["AGREE. So.", "**Deny** it.", '"I agree', "Hard to say.", "AGREE/DENY"]), max_size=12))
def test_sides_follow_from_the_one_before(texts: list[str]) -> None:
    sides = sides_of(texts)
    before: str | None = None
    for text, side in zip(texts, sides, strict=True):
        answered = before or "supports"
        if "hard" in text.lower() or "/" in text:
            assert side is None
        else:
            assert (side == answered) == ("agree" in text.lower())
        before = side


@pytest.mark.parametrize(
    "text",
    ["I respectfully disagree.", "Agreed: so it is.", "Turn 1: DENY", "AGREE or DENY", "AGREE to disagree"],
)
def test_a_message_is_read_as_the_protocol_reads_it(text: str) -> None:
    assert sides_of([text]) == [stance_of(relation_of(text), "claim", None)]
    assert sides_of(["DENY.", text]) == ["denies", stance_of(relation_of(text), "message", "denies")]


def ruled(sides: Sequence[str], step: str = "a", key: AnswerKey | None = None, **options: Any) -> dict[str, Any]:
    shown = {name: options.pop(name) for name in ("evidence", "conflicts", "bodies") if name in options}
    reply = model(7, key, **options).reply(ruling(claim(1), sides, **shown), Decoding(temperature=0.0), step)
    assert reply.finish_reason == "stop"
    read: dict[str, Any] = json.loads(reply.text)
    return read


class TestJudge:
    @pytest.mark.parametrize(("side", "verdict"), [("supports", 1), ("denies", 0)])
    def test_it_goes_by_the_sides(self, side: str, verdict: int) -> None:
        for n in range(50):
            said = ruled([side] * 2, str(n))
            assert said["verdict"] == verdict
            assert 0.5 < said["confidence"] <= 0.99

    def test_it_goes_by_the_evidence_where_they_cancel_out(self) -> None:
        for evidence, verdict in (([claim(1)], 1), (["Nothing of the kind."], 0)):
            said = ruled(["supports", "denies"], evidence=evidence, judge_noise=0)
            assert (said["verdict"], said["confidence"]) == (verdict, pytest.approx(0.62, abs=0.011))
            assert (said["consensus"], said["disputed"]) == (False, ["Whether the claim holds."])

    @pytest.mark.parametrize("sides", [(), ("unknown",), ("supports", "denies"), ("supports", "denies", "supports")])
    def test_it_abstains_when_they_cancel_out_and_there_is_no_evidence(self, sides: Sequence[str]) -> None:
        for n in range(20):
            said = ruled(sides, str(n), evidence=())
            assert (said["verdict"], said["confidence"], said["consensus"]) == (None, None, False)

    def test_no_key_reaches_it(self) -> None:
        for n in range(20):
            told = [ruled(["supports", "denies"], str(n), key) for key in (None, KEY, OPPOSITE)]
            assert told[0] == told[1] == told[2]

    def test_noise_makes_judges_differ(self) -> None:
        def verdicts(noise: float) -> set[int | None]:
            return {ruled(["supports", "denies", "denies"], str(n), judge_noise=noise)["verdict"] for n in range(60)}

        assert len(verdicts(0.0)) == 1
        assert verdicts(0.4) >= {0, 1}

    def test_the_summary_tells_verdict_and_dispute_even_without_its_last_sentence(self) -> None:
        """What a classifier can learn, once the words of the verdict are taken out."""
        courses = [
            ["supports"] * 4,
            ["denies"] * 4,
            ["supports", *["denies"] * 3],
            ["supports", "denies"] * 2,
            ["denies"],
        ]
        told: dict[tuple[int, int | None], set[str]] = {}
        for place, sides in enumerate(courses):
            for n in range(60):
                said = ruled(sides, str(n), judge_noise=0.3)
                kept = " ".join(re.split(r"(?<=\.) ", said["summary"])[:-1])
                told.setdefault((place, said["verdict"]), set()).add(kept)
        keys = list(told)
        assert {verdict for _, verdict in keys} >= {0, 1}
        assert all(len(found) > 2 for key, found in told.items() if key[1] is not None)
        for one in keys:
            for other in keys:
                # the first two courses are told apart by their verdicts alone
                if str(one) < str(other) and (one[1] != other[1] or {one[0], other[0]} != {0, 1}):
                    assert not told[one] & told[other], (one, other)


class TestMessagesAsTheyAreAskedFor:
    """The template of CEDA asks for a JSON object; the hand-made prompts above ask for plain text."""

    SLOTS: ClassVar[dict[str, Any]] = {
        "role": "r",
        "instruction": "i",
        "conflicts": [],
        "parted": False,
        "missing_pictures": [],
        "statements": [],
        "claim": claim(1),
        "evidence": [{"number": "E1", "source": "notes.txt, chunk 1", "text": EVIDENCE[0]}],
    }

    def said(self, messages: list[dict[str, Any]], **options: float) -> MessageReply:
        slots = {**self.SLOTS, "messages": messages, "about": "message" if messages else "claim"}
        reply = model(7, KEY, **options).reply(Templates().render("ceda/debater", slots), COLD, "c/turn/1")
        return MessageReply.model_validate(parse_reply(reply.text, MessageReply).data)

    def test_state_their_stance_and_the_word_that_fits(self) -> None:
        first = self.said([], competence=1.0)
        assert (first.says, first.stance) == ("DENY", "denies")
        heard = {"turn": 1, "speaker": "debater 1", "text": "Of course.", "says": "DENY", "stance": "denies"}
        assert (self.said([heard], competence=1.0).says, first.stance) == ("AGREE", "denies")
