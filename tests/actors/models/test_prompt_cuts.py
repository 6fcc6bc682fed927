"""Silently cut prompts: found by a count that no whole prompt can have, in any script, and only then."""

from __future__ import annotations

import random

import pytest

from moot.actors.models.openai_wire import WireUsage, usage_of
from moot.actors.models.prompt_cuts import is_prompt_cut
from moot.protocols.messages import Message, Usage

PROSE = {
    "English": "The committee published its findings about the river on Tuesday. ",
    "German": "Die Bundesregierung veröffentlichte gestern Untersuchungsergebnisse zur Entwicklung. ",
    "Russian": "Министерство опубликовало результаты исследования развития сотрудничества. ",
    "Korean": "정부는 오늘 새로운 경제 정책을 발표하였다. ",
    "Arabic": "أعلنت الوزارة اليوم عن نتائج الدراسة المتعلقة بالتعاون. ",
    "Chinese": "国务院新闻办公室今天上午举行新闻发布会介绍国民经济和社会发展情况。",
    "Japanese": "東京都は中小企業に対する支援策を発表しました。これにより多くの企業が助かります。",
    "Thai": "กรุงเทพมหานครเป็นเมืองหลวงของประเทศไทยและเป็นศูนย์กลางทางเศรษฐกิจ",
}


def is_cut(text: str, counted: int, cached: int | None = None) -> bool:
    return is_prompt_cut(Usage(counted, 9, None, cached), [Message("system", "Be brief."), Message("user", text)])


@pytest.mark.parametrize("script", PROSE)
@pytest.mark.parametrize("context", [512, 2000, 4096])
def test_a_cut_prompt_is_found_in_every_script(script: str, context: int) -> None:
    assert is_cut((PROSE[script] * 6000)[:180_000], context)


_RANDOM = random.Random(1)
WHOLE = {
    # Characters per token as counted with the vocabularies of Mistral (Tekken) and DeepSeek: the densest of both.
    "English of long words": ("Internationalization necessitates organizational responsibilities. ", 12.1),
    "one long word": ("responsibility ", 15.0),
    "one short word": ("the ", 4.0),
    "Chinese set phrases": ("微信公众号中华人民共和国人民代表大会常务委员会", 5.6),
    "Japanese": (PROSE["Japanese"], 1.9),
    "Thai": (PROSE["Thai"], 3.9),
    "code": ("            if value is None:\n                return result\n", 8.5),
    "table of numbers": ("".join(f"{_RANDOM.random():12.2f}" for _ in range(40)) + "\n", 2.9),
    "digits": ("1 2 3 4 5 6 7 8 9 ", 1.0),
    "blanks": ("word" + " " * 9000 + "\n" * 900, 100.0),
    "dashes": ("-" * 8000 + " text", 60.0),
    "equal letters": ("a" * 9000, 8.0),
    "equal ideographs": ("哈" * 9000, 4.0),
    "alternating letters": ("ab" * 4000, 8.0),
    "base64": ("".join(_RANDOM.choices("ABCDEFghijkl0123456789+/", k=4000)), 1.4),
    "table of marks": ("| a | b |\n|---|---|\n", 2.1),
}


@pytest.mark.parametrize("kind", WHOLE)
def test_no_whole_prompt_is_taken_for_a_cut_one(kind: str) -> None:
    text, per_token = WHOLE[kind]
    text = (text * (40_000 // len(text) + 1))[:40_000]
    assert not is_cut(text, max(300, int(len(text) / per_token)))


@pytest.mark.parametrize(
    ("words", "counted", "cached", "cut"),
    [
        (5000, 4096, None, True),  # a context, as it is a power of two
        (5000, 4097, None, False),
        (5600, 4097, None, True),
        (4096, 4096, None, False),
        (5600, 300, 5400, False),  # counted without what was cached
        (5600, 100, None, False),  # so little is no context
        (5600, 0, None, False),
    ],
)
def test_a_count_shows_a_cut(words: int, counted: int, cached: int | None, cut: bool) -> None:
    assert is_cut("vessel " * (words - 2), counted, cached) is cut


def test_an_unknown_count_shows_nothing() -> None:
    assert not is_prompt_cut(Usage(), [Message("user", "vessel " * 9000)])


@pytest.mark.parametrize(
    ("stated", "cached"),
    [
        ({}, None),
        ({"prompt_tokens_details": {"cached_tokens": 7}}, 7),
        ({"prompt_tokens_details": {"cached_tokens": None}, "cache_read_input_tokens": 5}, 5),
        ({"cache_read_input_tokens": 5, "cache_creation_input_tokens": 3}, 8),
        ({"prompt_tokens_details": [], "cache_read_input_tokens": "5"}, None),
    ],
)
def test_cached_tokens_are_read(stated: dict[str, object], cached: int | None) -> None:
    assert usage_of(WireUsage(9, 1, **stated)).cached_tokens == cached
