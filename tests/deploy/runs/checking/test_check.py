"""`moot.check`: documents and pictures in every form, several checks at once, and as the verifier of another system."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from judged_claim import ScriptedClaimDebate, ruling
from pictures import picture
from planted_records import Printed
from summary_debate import card, write_classifier_folder

import moot
from moot.deploy.runs.checking.show import show_checked

CLAIM = "The bridge opened in 1932."
TEXT = "The bridge opened in 1932. It is made of steel."


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    Path("notes.txt").write_text(TEXT)


def checked(claim: str = CLAIM, **given: Any) -> moot.Checked:
    return asyncio.run(moot.check(claim, **given))


def served(debate: ScriptedClaimDebate, **given: Any) -> moot.Checked:
    return checked(model=debate.server.model, **given)


def places(found: moot.Checked) -> list[str]:
    return [item.place for item in found.evidence]


@pytest.mark.parametrize("docs", ["notes.txt", Path("notes.txt"), ["notes.txt"], (Path("notes.txt"),), "."])
def test_documents_by_path(docs: Any) -> None:
    found = checked(docs=docs)
    assert places(found) == ["notes.txt, chunk 1"]
    assert found.simulated
    assert found.record is None
    assert list(Path().iterdir()) == [Path("notes.txt")], "nothing is left behind"


def test_documents_as_texts_by_name() -> None:
    found = checked(docs={"plan": TEXT, "letter": "The bridge opened in 1934."})
    assert places(found) == ["letter, chunk 1", "plan, chunk 1"]
    assert [(each.between, each.why) for each in found.conflicts] == [(["E1", "E2"], "number")]


def test_a_library_serves_many_checks() -> None:
    async def both() -> list[moot.Checked]:
        async with await moot.index({"plan": TEXT}) as library:
            claims = (CLAIM, "It is made of wood.")
            return list(await asyncio.gather(*(moot.check(claim, docs=library) for claim in claims)))

    found = asyncio.run(both())
    assert [places(each) for each in found] == [["plan, chunk 1"]] * 2
    assert [each.claim for each in found] == [CLAIM, "It is made of wood."]


@pytest.mark.parametrize("docs", [(), [], {}])
def test_no_documents_are_no_evidence(docs: Any) -> None:
    found = checked(docs=docs)
    assert (found.evidence, found.flags) == ([], ["no-evidence"])
    assert found.confidence is not None


def test_pictures_by_path_and_as_bytes_arrive_as_they_are() -> None:
    one, other = picture(size=(20, 10)), picture("JPEG", size=(30, 10))
    Path("one.png").write_bytes(one)
    found = checked(images=["one.png", Path("one.png"), other])
    assert places(found) == ["picture 1", "picture 3"], "equal pictures are one piece of evidence"
    assert [item.kind for item in found.evidence] == ["picture"] * 2
    assert "JPEG of 30 x 10 pixels" in found.evidence[1].text


def test_what_comes_back_says_all(debate: ScriptedClaimDebate) -> None:
    debate.debater = lambda step, user: "DENY. E1 says otherwise." if "/turn/1" in step else "AGREE. So it does."
    debate.judge = lambda step, user: ruling(0, 0.9, "It opened later.")
    found = served(debate, docs={"plan": "The bridge opened in 1934."})
    assert (found.label, found.source, found.how, found.exit_code) == ("hallucinated", "judges", "consensus", 5)
    assert found.confidence == pytest.approx(0.9)
    assert found.p_hallucinated == pytest.approx(0.9)
    assert found.rationale == "It opened later."
    assert [(m.debater, m.says, m.of, m.stance) for m in found.messages] == [
        ("debater/0", "DENY", "claim", "denies"),
        ("debater/1", "AGREE", "message", "denies"),
    ]
    assert [(judge.verdict, judge.confidence, judge.missing) for judge in found.judges] == [(0, 0.9, "")]
    assert (found.cost.calls, found.simulated, found.failure) == (3, False, "")
    assert found.missing_pictures == []


def test_a_check_that_fails_says_why_and_raises_nothing(debate: ScriptedClaimDebate) -> None:
    debate.judge = lambda step, user: "I would rather not judge."
    found = served(debate, docs="notes.txt")
    assert (found.label, found.confidence, found.exit_code) == (None, None, 3)
    assert (found.failure, found.judges) == ("quorum_failed", [])
    assert "no judge replied" in found.error
    assert len(found.messages) == 2


def test_a_classifier_has_the_last_word(printed: Printed) -> None:
    write_classifier_folder(Path("clf"), card())
    found = checked(docs="notes.txt", classifier="clf")
    assert found.source == "classifier"
    assert found.p_hallucinated is not None
    assert found.label == ("hallucinated" if found.p_hallucinated >= 0.5 else "supported")
    assert found.confidence == pytest.approx(max(found.p_hallucinated, 1.0 - found.p_hallucinated))
    assert found.judges[0].confidence is not None
    text = printed(show_checked, found)
    assert "(the classifier's)" in text
    assert f"judge/0: {'supported' if found.judges[0].verdict else 'hallucinated'}, confidence" in text


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"claim": " "}, "empty"),
        ({"claim": "half \ud800"}, "UTF-8"),
        ({"docs": {"a": " "}}, "'a'"),
        ({"images": [b"GIF89a"]}, "GIF"),
        ({"roles": {"judge": []}}, "judge"),
    ],
)
def test_bad_input_raises_a_line(given: dict[str, Any], complaint: str) -> None:
    with pytest.raises(moot.UserError, match=complaint) as raised:
        checked(**given)
    assert "\n" not in str(raised.value)


@pytest.mark.slow
@pytest.mark.ray
async def test_beside_a_ray_that_the_program_has_started(local_ray: None) -> None:
    import ray

    found = await moot.check("The bridge opened in 1932.", docs={"plan": "The bridge opened in 1932."})
    assert found.evidence[0].place == "plan, chunk 1"
    assert ray.is_initialized()


def test_a_library_that_is_closed_says_so() -> None:
    async def late() -> None:
        async with await moot.index({"plan": "The bridge opened in 1934."}) as library:
            pass
        await moot.check("The bridge opened in 1934.", docs=library)

    with pytest.raises(moot.ConfigError, match="closed"):
        asyncio.run(late())
    with pytest.raises(moot.ConfigError, match=r"moot.index"):
        moot.RunConfig.build({"docs": {"plan": "The bridge."}})
