"""One word for each concept: names and phrases that the glossary has replaced do not come back."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from places import ROOT

FOLDERS = ("metrics", "protocols", "actors", "deploy", "moot")

_CLASSES = """
AdmittedModel Affordable AgainstTruth Archive Arena Arrivals Asking AskedReply Ballot Bout BrierAgainst CallWatch
Carried Counter Crew Deaths Desk DialEffect EndingRate Ended FoundClassifier Handover Heard Held HeldTrial House
InlineArchive Judgings KappaSettings LeanHttp Learned LedgeredLimiter LibraryNote Line LocalCrew LocalScribe Looked
Manner MarkSheet MeanAgainst Membership MootBatches NotHeld OddGold Once OpenedClassifier Pace Parcel Past Placer
Placing Purse Questioned RayArchive RaySeat ReadByJudge Recall Reception Recorder RemoteCrew RemoteScribe Replayed
Returned Roster Rulings RunBroken Said Saturation Scribe Searching Seat SeatLost Seating SeenPrompt SeenReply Shelf
Shown SignalKeeper Spoken Stand Standing Station Talk Tally Told Trail Trails Tray Truth Unpaid Visit Want Watch
WriterActor
"""
_FUNCTIONS = """
build_house dealt hold_grid hold_in_thread hold_rounds leaves_nothing questioned recorded_past rows_as_written
take_away_the_dead told_apart
"""
_MODULES = """
arena arrivals brought crew desk dial handover house household joining line manner placing purse questioned
reception recorder roster seating scribe silence stand station tally trails
"""
CLASSES, FUNCTIONS, MODULES = (frozenset(words.split()) for words in (_CLASSES, _FUNCTIONS, _MODULES))
DEFINITIONS = re.compile(r"^[ \t]*(class|def|async def) (\w+)", re.MULTILINE)
PHRASES = re.compile(
    r"\bhold(s|ing)? (a |the |each |every )?(debate|cell)s?\b"
    r"|\b(go|goes|going|gone|went) on with\b"
    r"|\b(put|puts|putting) (\w+ ){0,5}aside\b"
    r"|\b(tell|tells|told|telling) (\w+ )?apart\b"
    r"|\bdebates? (is|are|was|were) held\b",
    re.IGNORECASE,
)
FROZEN = ("protocols/prompts", "actors/simulated")
"""Texts that models read, or that stand in the prompts of later steps: another word would be another debate."""


def _sources() -> list[Path]:
    return [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py") if "__pycache__" not in path.parts]


def test_no_class_function_or_module_has_a_name_that_was_replaced() -> None:
    found = []
    for path in _sources():
        if path.stem in MODULES:
            found.append(str(path.relative_to(ROOT)))
        for kind, name in DEFINITIONS.findall(path.read_text("utf-8")):
            if name in (CLASSES if kind == "class" else FUNCTIONS):
                found.append(f"{path.relative_to(ROOT)}: {name}")
    assert not found, "see docs/reference/glossary.md for the words to use"


@pytest.mark.lint
@pytest.mark.parametrize("folder", [*FOLDERS, "docs", "README.md", "CONTRIBUTING.md"])
def test_no_text_has_a_phrase_that_was_replaced(folder: str) -> None:
    place = ROOT / folder
    files = [place] if place.is_file() else [*place.rglob("*.py"), *place.rglob("*.md")]
    found = [
        f"{path.relative_to(ROOT)}:{number} {hit.group()}"
        for path in files
        if not path.relative_to(ROOT).as_posix().startswith(FROZEN)
        for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1)
        if (hit := PHRASES.search(line))
    ]
    assert not found, "see docs/reference/glossary.md for the words to use"
