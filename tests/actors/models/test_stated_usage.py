"""How many tokens texts may have, by their script; and a server that says that it used fewer cannot lift a budget."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai_server import simulated_server

import moot
from moot.actors.models.interface import ModelReply, TokenLogprobs
from moot.actors.models.token_bounds import (
    bytes_per_character,
    estimated_length,
    prompt_bound,
    text_estimate,
    with_plausible_usage,
)
from moot.actors.simulated.answer_key import AnswerKey
from moot.actors.simulated.server import openai_wire
from moot.deploy.results.figures.summary import summary_blocks
from moot.deploy.results.report.render import report_markdown
from moot.protocols.messages import Message, Usage
from moot.protocols.tasks import open_task

ASKED = [Message("system", "Be brief."), Message("user", "Can penguins fly? " * 100)]

TOKENS = st.one_of(
    st.text(min_size=1, max_size=12).map(lambda text: (text * 128)[:128]),
    st.builds(lambda char, times: char * times, st.characters(), st.integers(1, 10_000)),
    st.builds(
        lambda pair, times: pair * times, st.sampled_from(["-=", "\r\n", " \t", "/*", "·—"]), st.integers(1, 5_000)
    ),
)

LATIN = st.text(st.characters(min_codepoint=32, max_codepoint=0x17F), max_size=300)
OTHER = st.text(st.sampled_from("яжשسعही字漢한テ😀🎉"), min_size=1, max_size=300)


@given(LATIN)
def test_latin_texts_count_as_ever(text: str) -> None:
    assert estimated_length(text) == len(text)
    assert text_estimate(text) == len(text) // 4
    assert bytes_per_character([text]) == 1


@given(OTHER)
def test_other_texts_are_estimated_at_a_token_a_character_and_bound_by_their_bytes(text: str) -> None:
    assert text_estimate(text) == len(text)
    assert len(text) <= len(text.encode()) <= prompt_bound([Message("user", text)])


@pytest.mark.parametrize(
    ("text", "each"), [("Где он?", 2), ("أين هو؟", 2), ("他在哪里", 3), ("वह कहाँ है", 3), ("😀🎉🎉", 4)]
)
def test_a_character_is_bound_by_its_bytes(text: str, each: int) -> None:
    assert bytes_per_character([text, ""]) == each


def listed(count: int) -> TokenLogprobs:
    """Log-probabilities of so many tokens."""
    nothing = np.empty((count, 0), np.float32)
    return TokenLogprobs(["x"] * count, np.zeros(count, np.float32), [], nothing)


@given(said=st.lists(TOKENS, max_size=4), asked=st.lists(TOKENS, max_size=4), more=st.integers(0, 3))
def test_a_plausible_token_count_is_kept(said: list[str], asked: list[str], more: int) -> None:
    """Whatever the vocabulary: its tokens may be long, of equal characters very long."""
    reply = ModelReply("".join(said), "stop", Usage(len(asked) + more, len(said) + more))
    assert with_plausible_usage(reply, [Message("user", "".join(asked))]) is reply


@pytest.mark.parametrize(
    ("stated", "tokens", "counted"),
    [
        (Usage(0, 0), None, Usage(460, 51)),
        (Usage(0, 50), None, Usage(460, 50)),
        (Usage(3, 1), None, Usage(460, 51)),
        (Usage(400, 0), listed(70), Usage(400, 70)),
        (Usage(400, 40), listed(70), Usage(400, 70)),
        (Usage(400, 69), listed(70), None),  # the last one may be what ends the reply
        (Usage(400, 90), listed(70), None),
        (Usage(None, 0), None, Usage(None, 51)),
        (Usage(), None, None),
        (Usage(11, 2), None, None),
    ],
)
def test_a_count_below_what_the_texts_have_is_estimated_and_marked(
    stated: Usage, tokens: TokenLogprobs | None, counted: Usage | None
) -> None:
    found = with_plausible_usage(ModelReply("So it goes. " * 17, "stop", stated, tokens), ASKED)
    assert (found.usage, found.stated) == ((stated, None) if counted is None else (counted, stated))


def _run(port: int, out: Path, **options: Any) -> Any:
    model = f"http://127.0.0.1:{port}/v1#simulated"
    return moot.run(model=model, engine="inline", protocol="majority-vote", limit=6, seed=3, out=out, **options)


def test_a_budget_is_kept_for_a_server_that_reports_no_tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
    monkeypatch.setattr(openai_wire, "_usage", lambda reply: nothing)
    with simulated_server(AnswerKey.from_cases(open_task("sample").cases()), seed=3) as port:
        whole = _run(port, tmp_path / "whole")
        # Were it believed, all that is asked for one after another would fit.
        stopped = _run(port, tmp_path / "stopped", max_tokens=whole.summary.tokens_paid // 2, max_open=1)
    turns = whole.table("turns").to_pylist()
    assert all(row["prompt_tokens"] > 50 and row["completion_tokens"] > 5 for row in turns)
    assert {(row["prompt_tokens_stated"], row["completion_tokens_stated"]) for row in turns} == {(0, 0)}
    assert whole.summary.usage_estimated == whole.summary.calls == len(turns)
    assert "usage estimated" in report_markdown(summary_blocks(whole.summary))
    assert stopped.exit_code == 4
    assert 0 < stopped.summary.tokens_paid <= whole.summary.tokens_paid // 2
    again = moot.run(model=f"replay/{tmp_path / 'whole'}", engine="inline", protocol="majority-vote", limit=6, seed=3,
                     out=tmp_path / "again")  # fmt: skip
    assert {row["completion_tokens_stated"] for row in again.table("turns").to_pylist()} == {0}
