"""Agent C: what is at odds with what, and who is shown which evidence."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.protocols.ceda.conflicts import Conflict, Why, conflicts_of
from moot.protocols.ceda.evidence_split import DEBATERS, Shown, split_evidence
from moot.protocols.ceda.items import Item
from moot.protocols.ceda.protocol import context_of
from moot.protocols.ceda.settings import CedaSettings


def texts(*said: str) -> list[Item]:
    return [Item(id=f"E{i}", kind="document", document="d", chunk=i, text=text) for i, text in enumerate(said, start=1)]


def at_odds(*pairs: tuple[int, int]) -> list[Conflict]:
    return [Conflict(between=[f"E{a}", f"E{b}"], why="number", detail="") for a, b in pairs]


@pytest.mark.parametrize(
    ("one", "other", "why"),
    [
        ("The bridge opened in 1932.", "In 1934 the bridge was opened.", "number"),
        ("The tower is 300 metres high.", "The tower is 324 metres high.", "number"),
        ("The flood cost $3.5 million in damage.", "The flood cost $35 million in damage.", "number"),
        ("The cat has five toes on each paw.", "The cat has 4 toes on each paw.", "number"),
        ("Turnout in the town was 40 percent.", "Turnout in the town was 45%.", "number"),
        ("Turnout in the town was 40 %, they say.", "Turnout in the town was 45 per cent.", "number"),
        ("Since 1932, the bridge is open.", "Since 1934 the bridge is open.", "number"),
        ("The museum is open on Mondays.", "The museum isn't open on Mondays.", "negation"),
        ("Bats are blind animals.", "No bats are blind animals.", "negation"),
        ("The bridge opened on June 12, 1932.", "The bridge opened on June 13, 1932.", "number"),
        ("The bridge opened on 12 June 1932.", "The bridge opened on 1932-06-13.", "number"),
        ("The bridge opened on June 12, 1932.", "The bridge opened on June 12, 1934.", "number"),
        ("It is -5 degrees in the town in winter.", "It is 5 degrees in the town in winter.", "number"),
        ("It is minus 5 degrees in the town.", "It is 5 degrees in the town.", "number"),
        ("The lake is 10-15 metres deep.", "The lake is 16 metres deep.", "number"),
        ("The lake is between 10 and 15 metres deep.", "The lake is 8 metres deep.", "number"),
        ("More than 100 people died in the fire.", "At most 90 people died in the fire.", "number"),
        ("More than 100 people died in the fire.", "In the fire 90 people died.", "number"),
        ("About 100 people died in the fire.", "In the fire 120 people died.", "number"),
        ("The lake is 5,5 km long.", "The lake is 5.0 km long.", "number"),
        ("Apollo 11 landed on the Moon in 1969.", "Apollo 11 landed on the Moon in 1971.", "number"),
        ("The cat was hardly ever on the mat.", "The cat was on the mat.", "negation"),
        ("It is not open, no doubt, the museum.", "The museum is open, no doubt.", "negation"),
        ("Female cats are right pawed.", "Female cats are left pawed.", "antonym"),
        ("Prices in the city rose sharply.", "Prices in the city fell sharply.", "antonym"),
    ],
)
def test_texts_that_are_at_odds(one: str, other: str, why: Why) -> None:
    (found,) = conflicts_of(texts(f"It rained. {one}", f"{other} We left."))
    assert (found.between, found.why) == (["E1", "E2"], why)
    assert found.detail
    (turned,) = conflicts_of(texts(other, one))
    assert turned.why == why


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The bridge opened in 1932.", "The bridge was opened in 1932 by the mayor."),
        ("The bridge opened in 1932.", "The library in town burnt in 1934."),
        ("The flood cost 3,500,000 dollars.", "The flood cost 3.5 million dollars."),
        ("The tower is 300 metres high.", "The tower is 1063 feet high."),
        ("The old file is called 36fe6a.", "The old file is called 9fa0f2."),
        ("The bridge, opened in 1932, is long.", "The bridge opened in 1932."),
        ("The museum is not open on Mondays.", "The museum is closed on Mondays."),
        ("The museum is open on Mondays.", "The harbour is not open to ships."),
        ("Right of the left door is a window.", "Left of the right door is a window."),
        ("He came in 1932.", "She left in 1934."),
        ("The tower is not only tall but also heavy.", "The tower is tall and heavy."),
        ("There is no doubt that the bridge opened in 1932.", "The bridge opened in 1932."),
        ("The cat is on the mat without a doubt.", "The cat is on the mat."),
        ("The perfume No. 5 is by Chanel of Paris.", "The perfume 5 is by Chanel of Paris."),
        ("The cat has never been on the mat.", "The cat was hardly ever on the mat."),
        ("The lake is 10-15 metres deep.", "The lake is 12 metres deep."),
        ("The lake is between 10 and 15 metres deep.", "The lake is 12 metres deep."),
        ("The town grew from 10 to 20 million people.", "The town grew to 20 million people."),
        ("The lake is over 100 metres deep.", "The lake is more than 120 metres deep."),
        ("More than 100 people died in the fire.", "At least 90 people died in the fire."),
        ("More than 100 people died in the fire.", "In the fire 120 people died."),
        ("No more than 100 people died in the fire.", "In the fire 80 people died."),
        ("The lake is about 100 metres deep.", "The lake is 102 metres deep."),
        ("The lake is 5.0 km long.", "The lake is 5,0 km long."),
        ("Apollo 11 landed on the Moon in July 1969.", "Apollo 12 landed on the Moon in November 1969."),
        ("World War 2 began in 1939.", "World War 1 began in 1914."),
        ("Henry VIII was king of England until 1547.", "Henry VII was king of England until 1509."),
        ("Sales rose 5% in 2019.", "Sales rose 5 per cent in 2020."),
        ("Sales rose 5% in 2019.", "Sales rose 7% in 2020."),
        ("The team won 3-2 against Spain.", "The team won 3 to 2 against Spain."),
        ("The bridge opened on 12 June 1932.", "The bridge opened in June 1932."),
        ("The bridge opened on 12 June 1932.", "The bridge opened on 1932-06-12."),
        ("It opened in 1932 in the old town.", "It opened after 5 years in the old town."),
        ("", "The bridge opened in 1932."),
    ],
)
def test_texts_that_are_not(one: str, other: str) -> None:
    assert conflicts_of(texts(one, other)) == ()
    assert conflicts_of(texts(other, one)) == ()


def test_two_pictures_are_not_at_odds_but_a_picture_and_a_text_can_be() -> None:
    said = ("The picture shows five cats.", "The picture shows four cats.")
    pictures = [Item(id=f"E{i}", kind="picture", document="p", picture=i, text=text) for i, text in enumerate(said, 2)]
    found = context_of([*texts("The picture shows five cats."), *pictures], "conflicts")
    assert [conflict.between for conflict in found.conflicts] == [["E1", "E3"]]
    assert found.considered == 2


PICTURE = Item(id="E3", kind="picture", document="picture 1", picture=0, text="")


@pytest.mark.parametrize(
    ("items", "odds", "shown", "first", "second"),
    [
        (texts(*"abcde"), ((1, 2), (2, 4)), "split", "E1 E4 E5", "E2 E3"),
        (texts(*"abcde"), (), "split", "E1 E3 E5", "E2 E4"),
        ([*texts("a", "b"), PICTURE], ((1, 3),), "split", "E1 E3", "E2 E3"),
        ([*texts("a", "b"), PICTURE], ((1, 3),), "conflicts", "E1 E2 E3", "E1 E2 E3"),
        (texts("a"), (), "split", "E1", "E1"),
        ([], (), "split", "", ""),
        ([], (), "conflicts", "", ""),
        (texts("a", "b", "c"), (), "shared", "E1 E2 E3", "E1 E2 E3"),
        (texts("a", "b", "c"), (), "conflicts", "E1 E2 E3", "E1 E2 E3"),
    ],
    ids=[
        "at odds",
        "by rank",
        "pictures to both",
        "a text and a picture",
        "one",
        "none",
        "none at odds",
        "all",
        "none",
    ],
)
def test_who_is_shown_what(
    items: list[Item], odds: tuple[tuple[int, int], ...], shown: Shown, first: str, second: str
) -> None:
    assert split_evidence(items, at_odds(*odds), shown) == {
        DEBATERS[0]: (*first.split(),),
        DEBATERS[1]: (*second.split(),),
    }


PAIRS = st.lists(st.tuples(st.integers(1, 8), st.integers(1, 8)).filter(lambda pair: pair[0] < pair[1]), max_size=12)


@given(st.integers(2, 8), PAIRS)
def test_every_text_is_shown_to_one_and_each_debater_has_some(count: int, pairs: list[tuple[int, int]]) -> None:
    items = texts(*"abcdefgh"[:count])
    conflicts = at_odds(*(pair for pair in pairs if pair[1] <= count))
    shown = split_evidence(items, conflicts, "split")
    assert sorted((*shown["debater/0"], *shown["debater/1"])) == [item.id for item in items]
    assert all(shown.values())
    if _can_be_parted(count, conflicts):
        assert not any(set(conflict.between) <= set(seen) for conflict in conflicts for seen in shown.values())


@given(st.integers(2, 8), PAIRS)
def test_a_text_without_a_conflict_is_shown_to_both_by_default(count: int, pairs: list[tuple[int, int]]) -> None:
    conflicts = at_odds(*(pair for pair in pairs if pair[1] <= count))
    shown = split_evidence(texts(*"abcdefgh"[:count]), conflicts, CedaSettings().shown)
    split = set(shown["debater/0"]) ^ set(shown["debater/1"])
    assert split == {name for conflict in conflicts for name in conflict.between}
    assert all(shown.values())


def _can_be_parted(count: int, conflicts: Sequence[Conflict]) -> bool:
    """Whether some division leaves no conflict on one side, by trying them all."""
    pairs = [tuple(int(name[1:]) - 1 for name in conflict.between) for conflict in conflicts]
    return any(all((sides >> a & 1) != (sides >> b & 1) for a, b in pairs) for sides in range(2**count))
