"""The simulated debaters, judges and context agent of a claim: as competent as set, moved, and consistent."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import pytest
from claim_prompts import COUNT, KEY, OPPOSITE, claim, debating, message, ruling
from simulated_calls import COLD, TEMPLATES, WHOLE, model, says

from moot.protocols.ceda.conflicts import Conflict
from moot.protocols.ceda.context_reply import ContextReply
from moot.protocols.ceda.items import Item
from moot.protocols.ceda.replies import JudgeReply, MessageReply
from moot.protocols.ceda.synthesis import EvidenceSynthesis, grounded
from moot.protocols.messages import Decoding


def told(
    number: int, said: Sequence[dict[str, Any]] = (), decoding: Decoding = WHOLE, step: object = "", **options: Any
) -> MessageReply:
    """What a debater says next."""
    shown = {"evidence": options.pop("evidence")} if "evidence" in options else {}
    options = {"key": KEY} | options
    return says(MessageReply, debating(claim(number), said, **shown), f"{number}/{step}", decoding, **options)


def right(number: int, stance: str | None) -> bool:
    return stance == ("denies" if number % 2 else "supports")


def bound(share: float) -> float:
    """Four standard deviations of a share of `COUNT` independent draws."""
    return 4.0 * math.sqrt(share * (1.0 - share) / COUNT)


class TestDebater:
    def test_without_a_key_it_is_at_chance(self) -> None:
        found = sum(right(n, told(n, key=None, evidence=()).stance) for n in range(COUNT)) / COUNT
        assert found == pytest.approx(0.5, abs=bound(0.5))

    def test_the_evidence_pulls_a_little(self) -> None:
        """A tenth of the sides go where it leans; so the competence moves by a tenth towards chance."""
        covered, bare = (
            [told(n, evidence=(text.format(claim(n)),), step=step).stance for n in range(COUNT) for step in range(4)]
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
        said = [message(1, "supports"), message(2, "denies", says="DENY")]
        yielding, middling, stubborn = (
            sum(told(n, said, key=None, stubbornness=each).stance == "denies" for n in range(300))
            for each in (0.0, 0.5, 1.0)
        )
        assert stubborn < 0.1 * 300 < middling < yielding
        assert yielding > 0.5 * 300

    @pytest.mark.parametrize("unclear_rate", [0.0, 0.3])
    def test_words_are_true_to_the_side_over_long_debates(self, unclear_rate: float) -> None:
        """A stubborn debater who knows keeps to the truth for twenty turns, whatever the other said last."""
        settings: dict[str, Any] = {"competence": 1.0, "stubbornness": 1.0, "unclear_rate": unclear_rate}
        for number in range(6):
            said: list[dict[str, Any]] = []
            for turn in range(1, 21):
                about = said[-1]["stance"] if said and said[-1]["stance"] != "unclear" else "supports"
                new = told(number, said, COLD, turn, key=KEY if turn % 2 else OPPOSITE, **settings)
                said.append(message(turn, new.stance or "unclear", new.text, new.says or ""))
                if new.stance != "unclear":
                    assert right(number, new.stance) == bool(turn % 2)
                    assert (new.says == "AGREE") == (new.stance == about)
            assert bool(unclear_rate) == ("unclear" in [each["stance"] for each in said])

    @pytest.mark.parametrize("sides", [[], ["supports"], ["denies", "supports"]])
    def test_its_word_is_as_probable_as_believed(self, sides: list[str]) -> None:
        """At temperature 0 the likeliest word is the one that is said."""
        words, said = set(), [message(turn, side) for turn, side in enumerate(sides, 1)]
        for number in range(40):
            decoding = Decoding(temperature=0.0, top_logprobs=5)
            tokens = model(7, KEY).reply(debating(claim(number), said), decoding, str(number)).tokens
            assert tokens is not None
            listed = dict(zip(tokens.alt_tokens[20:25], tokens.alt_logprob[4].tolist(), strict=True))
            assert tokens.tokens[4] == max(listed, key=listed.__getitem__)
            # .985 of the mass is on the two words, .97 of that on this spelling
            assert math.exp(listed["AGREE"]) + math.exp(listed["DENY"]) == pytest.approx(0.985 * 0.97, abs=0.001)
            words.add(tokens.tokens[4])
        assert words == {"AGREE", "DENY"}

    def test_the_rate_of_unclear_messages_is_recovered_and_adds_only(self) -> None:
        found = {}
        for rate in (0.0, 0.2, 0.6, 1.0):
            replies = [told(n, unclear_rate=rate) for n in range(COUNT)]
            found[rate] = {n for n, reply in enumerate(replies) if reply.stance == "unclear"}
            assert len(found[rate]) / COUNT == pytest.approx(rate, abs=bound(rate))
        assert found[0.0] < found[0.2] < found[0.6] < found[1.0]


def ruled(sides: Sequence[str], step: object = "a", **options: Any) -> JudgeReply:
    shown = {name: options.pop(name) for name in ("evidence", "conflicts") if name in options}
    return says(JudgeReply, ruling(claim(1), sides, **shown), step, COLD, **options)


class TestJudge:
    @pytest.mark.parametrize(("side", "verdict"), [("supports", 1), ("denies", 0)])
    def test_it_goes_by_the_sides(self, side: str, verdict: int) -> None:
        told = [ruled([side] * 2, n) for n in range(50)]
        assert sum(said.verdict == verdict for said in told) >= 48, "noise turns hardly any round"
        assert all(0.5 < (said.confidence or 0.0) <= 0.99 for said in told)

    def test_it_goes_by_the_evidence_where_they_cancel_out_and_abstains_without(self) -> None:
        for evidence, verdict in (([claim(1)], 1), (["Nothing of the kind."], 0)):
            said = ruled(["supports", "denies"], evidence=evidence, judge_noise=0)
            assert said.verdict == verdict
            assert said.confidence == pytest.approx(0.62, abs=0.011)
            assert (said.consensus, said.disputed) == (False, ("Whether the claim holds.",))
        for sides in ((), ("unknown",), ("supports", "denies", "supports")):
            said = ruled(sides, evidence=())
            assert (said.verdict, said.confidence, said.consensus) == (None, None, False)

    def test_noise_makes_judges_differ(self) -> None:
        def verdicts(noise: float) -> set[int | None]:
            return {ruled(["supports", "denies", "denies"], n, judge_noise=noise).verdict for n in range(60)}

        assert len(verdicts(0.0)) == 1
        assert verdicts(0.4) >= {0, 1}

    def test_the_summary_shows_verdict_and_dispute_even_without_its_last_sentence(self) -> None:
        """What a classifier can learn, once the words of the verdict are taken out."""
        courses = [["supports"] * 4, ["denies"] * 4, ["supports", *["denies"] * 3], ["supports", "denies"] * 2]
        told: dict[tuple[int, int | None], set[str]] = {}
        for place, sides in enumerate([*courses, ["denies"]]):
            for n in range(60):
                said = ruled(sides, n, judge_noise=0.3)
                kept = " ".join(re.split(r"(?<=\.) ", said.summary)[:-1])
                told.setdefault((place, said.verdict), set()).add(kept)
        keys = list(told)
        assert {verdict for _, verdict in keys} >= {0, 1}
        assert sum(len(found) > 2 for key, found in told.items() if key[1] is not None) >= len(courses)
        for one in keys:
            for other in keys:
                # the first two courses are told apart by their verdicts alone
                if str(one) < str(other) and (one[1] != other[1] or {one[0], other[0]} != {0, 1}):
                    assert not told[one] & told[other], (one, other)


PAIR = ("The chapel was built in 1711, says a plaque.", "The register has the chapel built in 1714.")
PEACE = ("The chapel was built in 1711.", "The chapel has two doors.", "Bread is sold in the market.")


def made(
    texts: tuple[str, ...], sample: int = 0, decoding: Decoding = WHOLE, **settings: Any
) -> tuple[EvidenceSynthesis, tuple[Conflict, ...]]:
    items = [Item(id=f"E{n}", kind="document", document="d", chunk=n, text=text) for n, text in enumerate(texts, 1)]
    shown = [{"number": item.id, "source": "d", "text": item.text} for item in items]
    messages = TEMPLATES.render("ceda/context", {"claim": "The chapel was built in 1711.", "evidence": shown})
    return grounded(says(ContextReply, messages, f"context/{sample}", decoding, key=KEY, **settings), items)


@pytest.mark.parametrize("competence", [0.4, 0.78, 1.0])
def test_a_conflict_is_found_with_the_competence(competence: float) -> None:
    found = sum(bool(made(PAIR, n, competence=competence)[1]) for n in range(400))
    assert found / 400 == pytest.approx(competence, abs=0.1)


def test_at_temperature_nought_it_finds_all_that_looks_so_and_nothing_else() -> None:
    assert len(made(PAIR, decoding=COLD, competence=0.1)[1]) == 1
    assert made(PEACE, decoding=COLD, competence=0.1)[1] == ()


def test_it_quotes_what_is_there_unless_it_invents() -> None:
    honest, _ = made(PAIR)
    assert (len(honest.statements), honest.unfounded) == (2, 0)
    inventive, conflicts = made(PAIR, competence=1.0, hallucination_rate=1.0)
    assert (inventive.statements, conflicts, inventive.unfounded) == ((), (), 3)
