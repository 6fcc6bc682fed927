"""Votes in summaries and transcripts: ties are counted, and what is right without them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moot.deploy.reading.show import show
from moot.deploy.reading.summaries.summary import summarise


def vote(answer: str, tied: list[str]) -> dict[str, Any]:
    votes = [{"answer": each, "count": 1, "stated": 0.5} for each in tied or [answer]]
    broken = "stated_confidence" if tied else ""
    return {"votes": votes, "tied": tied, "tie_broken_by": broken, "answer": answer}


def voted(session: Any, case_id: str, answer: str, *tied: str, how: str = "vote", path: str = "vote") -> None:
    session.case(case_id)
    session.event(case_id, "vote", path, vote(answer, list(tied)))
    session.verdict(case_id, answer, how)


def test_ties_are_counted(planted: Callable[..., Path], session: Any, printed: Callable[..., str]) -> None:
    """Right: a, c and e (gold is Yes); a, b and e were ties, e one of a consensus, f only in the branch not taken."""
    voted(session, "a", "Yes", "No", "Yes")
    voted(session, "b", "No", "No", "Yes")
    voted(session, "c", "Yes")
    voted(session, "d", "No")
    voted(session, "e", "Yes", "No", "Yes", how="skipped", path="vote/consensus")
    voted(session, "f", "No", "No", "Yes", how="skipped")
    session.case("g")
    session.verdict("g", "Yes", "stable-agree", rounds=1)
    folder = planted(session)
    found = summarise(folder)
    assert found.votes is not None
    assert (found.votes.n, found.votes.tied, found.votes.scored, found.votes.scored_untied) == (5, 3, 5, 2)
    assert found.votes.accuracy_untied == pytest.approx(1 / 2)
    assert found.votes.accuracy_strict == pytest.approx(1 / 5)
    assert found.accuracy == pytest.approx(4 / 7)
    assert "3 of 5" in printed(show, folder)
    assert "chosen: Yes (a tie of No, Yes, broken by stated confidence)" in printed(show, folder, "a")
    consensus = printed(show, folder, "e")
    assert "Consensus by vote" in consensus
    assert "Further answers" not in consensus, "nobody was asked for any"


def test_a_run_without_votes_has_no_such_figures(planted: Callable[..., Path], session: Any) -> None:
    session.case("a")
    session.event("a", "vote", "vote", {"by": "another protocol"})
    session.verdict("a", "Yes", "vote")
    folder = planted(session)
    assert summarise(folder).votes is None
    show(folder, "a")
