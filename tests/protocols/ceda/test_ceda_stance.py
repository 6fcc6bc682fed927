"""Stances on the claim: what the first word says, what follows from it, and when both are of one mind."""

from __future__ import annotations

import pytest
from ceda_script import ruling, run_check
from hypothesis import given
from hypothesis import strategies as st

from moot.protocols.ceda.debate import claim_message_of
from moot.protocols.ceda.evidence_split import DEBATERS
from moot.protocols.ceda.replies import MessageReply
from moot.protocols.ceda.stance import (
    About,
    ClaimMessage,
    Relation,
    Stance,
    about_what,
    is_consensus,
    relation_of,
    stance_of,
)
from moot.protocols.reply_parsing import InvalidReply, parse_reply

FIRST_WORDS: dict[Relation | None, list[str]] = {
    "AGREE": [
        "AGREE",
        "agree.",
        "Agreed: so it is.",
        "**AGREE** - E1 says so",
        '"Agree", because',
        "\u201cAGREE\u201d so",
        "I agree, E1 says so.",
        "I fully agree.",
        "- AGREE",
        "AGREE. Deny it who may.",
        "AGREE: denying it makes no sense.",
        "AGREE, but deny the second half.",
        "\uff21\uff27\uff32\uff25\uff25 it is",
        "_agrees_ with that",
        "Turn 2: AGREE, E1 says so.",
        "**Answer:** I agree.",
        "First_word: agree",
    ],
    "DENY": [
        "DENY",
        "deny: no.",
        "**Deny**",
        "I deny that.",
        "Denied.",
        "Disagree.",
        "I respectfully disagree",
        "# DENY\n",
        "debater 1: DENY",
        "My answer: DENY",
        "[Debater 2]: **DENY**",
    ],
    None: [
        "",
        "   ",
        "It is so. AGREE",
        "AGREE/DENY",
        "AGREE or DENY: hard to say",
        "**AGREE** / **DENY**",
        "Deny and agree.",
        "Agree to disagree.",
        "I do not agree.",
        "I partially agree.",
        "Agreeable as it is, no.",
        "Denying it is hard.",
        "AGREEMENT",
        "The last message is right.",
        "42",
        "AGREE or DENY: DENY",
        "Not: AGREE",
        "I cannot agree: DENY",
        "Turn 2: debater 1: DENY",
        "What the evidence says here: DENY",
        "Debater 1: I do not agree.",
    ],
}


@pytest.mark.parametrize(("text", "says"), [(text, says) for says, texts in FIRST_WORDS.items() for text in texts])
def test_first_words(text: str, says: Relation | None) -> None:
    assert relation_of(text) == says


@pytest.mark.parametrize(
    ("says", "of", "last", "stance"),
    [
        ("AGREE", "claim", None, "supports"),
        ("DENY", "claim", None, "denies"),
        ("AGREE", "claim", "denies", "supports"),
        ("AGREE", "message", "supports", "supports"),
        ("AGREE", "message", "denies", "denies"),
        ("DENY", "message", "supports", "denies"),
        ("DENY", "message", "denies", "supports"),
        ("AGREE", "message", None, None),
        ("DENY", "message", None, None),
        (None, "claim", None, None),
        (None, "message", "supports", None),
    ],
)
def test_the_truth_table(says: Relation | None, of: About, last: Stance | None, stance: Stance | None) -> None:
    assert stance_of(says, of, last) == stance


def held(*words: Relation | None) -> list[ClaimMessage]:
    """A debate in which these are the first words."""
    said: list[ClaimMessage] = []
    for number, says in enumerate(words):
        of, last = about_what(said), said[-1].stance if said else None
        stance = stance_of(says, of, last)
        said.append(
            ClaimMessage(turn=number + 1, debater=DEBATERS[number % 2], text="", says=says, of=of, stance=stance)
        )
    return said


BELIEFS = st.lists(st.sampled_from(["supports", "denies", None]), max_size=20)


@given(BELIEFS)
def test_who_says_what_they_believe_is_read_as_believing_it(beliefs: list[Stance | None]) -> None:
    """A debater who knows what it is asked about picks the word that fits; the derived stance is its belief."""
    words: list[Relation | None] = []
    for belief in beliefs:
        before = held(*words)
        meant: Stance | None = "supports" if about_what(before) == "claim" else before[-1].stance
        words.append(None if belief is None else "AGREE" if belief == meant else "DENY")
    said = held(*words)
    assert [each.stance for each in said] == beliefs
    for end in range(2, len(beliefs) + 1):
        one, other = beliefs[end - 2 : end]
        assert is_consensus(said[:end]) == (one is not None and one == other)


def said_by(text: str, *before: ClaimMessage, **fields: str) -> ClaimMessage:
    """The message that a reply is."""
    reply = MessageReply.model_validate({"text": text, **fields})
    return claim_message_of(reply, before, DEBATERS[len(before) % 2])


class TestStatedStance:
    """A debater's stance on the claim is a field of its own: AGREE and DENY are not taken on trust."""

    def test_counts_and_not_what_agree_would_mean(self) -> None:
        """In the source's own example both say AGREE to a claim that both argue against."""
        said = said_by("The lines are equally long, so the claim is false.", says="AGREE", stance="denies")
        assert (said.says, said.implied, said.stance, said.is_contradictory) == ("AGREE", "supports", "denies", True)
        after = said_by("Indeed, both are equal.", said, says="AGREE", stance="denies")
        assert is_consensus([said, after])
        assert not after.is_contradictory

    def test_that_is_unclear_is_unknown_whatever_the_word(self) -> None:
        said = said_by("It may be.", says="AGREE", stance="unclear")
        assert (said.stance, said.stated, said.is_contradictory) == (None, True, False)

    def test_that_is_not_stated_follows_from_the_word(self) -> None:
        said = said_by("E1 says otherwise.", says="DENY")
        assert (said.stance, said.stated, said.is_contradictory) == ("denies", False, False)
        assert said_by("DENY: E1 says otherwise.").says == "DENY"

    def test_of_a_reply_in_plain_text_follows_from_its_first_word(self) -> None:
        read = parse_reply("DENY. E1 says otherwise.", MessageReply)
        assert read.data == {"says": None, "text": "DENY. E1 says otherwise.", "stance": None}
        with pytest.raises(InvalidReply):
            parse_reply('{"says": "DENY"}', MessageReply)


async def test_a_stated_stance_ends_the_debate_and_its_contradiction_is_flagged() -> None:
    said = {"says": "AGREE", "text": "It is 1934, so the claim is false.", "stance": "denies"}
    floor, verdict = await run_check(changes={"turn/*": said, "judge/*": ruling(0)})
    assert verdict.how == "consensus"
    assert verdict.payload["stances"] == {"debater/0": "denies", "debater/1": "denies"}
    assert verdict.flags == ("stance-contradicts",)
    first = floor.event("stance", "turn/1/stance")
    assert (first["says"], first["implied"], first["stance"], first["stated"]) == ("AGREE", "supports", "denies", True)
    assert floor.asks["judge/0"].slots["messages"][0]["stance"] == "denies"
