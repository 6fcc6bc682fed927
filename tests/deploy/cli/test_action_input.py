"""What a person types as an action: by number, by name, by the beginnings of its words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.deploy.cli.moderation.dialogue import FormChoice, parse_choice
from moot.protocols.errors import ConfigError

ACTIONS = ("go on", "set kappa", "set temperature", "ask", "edit topics", "end")

_word = st.text("abcdeé", min_size=1, max_size=4)
_actions = st.lists(st.lists(_word, min_size=1, max_size=3).map(" ".join), min_size=1, max_size=5, unique=True)
_texts = st.text(max_size=20).map(str.strip)


@pytest.mark.parametrize(
    ("line", "chosen"),
    [
        ("go on", ("go on", "")),
        ("G", ("go on", "")),
        ("1", ("go on", "")),
        ("set k 0.3", ("set kappa", "0.3")),
        ("  set   KAPPA  0.3 ", ("set kappa", "0.3")),
        ("2 0.3", ("set kappa", "0.3")),
        ("ask why not 2 of them?", ("ask", "why not 2 of them?")),
        ("as two\nlines", ("ask", "two\nlines")),
        ("edit", ("edit topics", "")),
        ("en", ("end", "")),
        ("go online", ("go on", "online")),
    ],
)
def test_what_is_understood(line: str, chosen: tuple[str, str]) -> None:
    assert parse_choice(line, ACTIONS) == FormChoice(*chosen)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("e", "'e' may be any of edit topics, end"),
        ("set 0.3", "'set 0.3' may be any of set kappa, set temperature"),
        ("askk why", "unknown action 'askk why'"),
        ("0", "expected a number from 1 to 6"),
        ("7 x", "expected a number from 1 to 6"),
        ("", "unknown action ''"),
        ("x" * 500, "unknown action 'x{40}'"),
    ],
)
def test_what_is_not(line: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why) as error:
        parse_choice(line, ACTIONS)
    assert len(str(error.value)) < 200


@given(_actions, _texts, st.data())
def test_every_action_is_reached_by_its_number(actions: list[str], text: str, data: st.DataObject) -> None:
    number = data.draw(st.integers(1, len(actions)))
    assert parse_choice(f"{number} {text}", actions) == FormChoice(actions[number - 1], text)


@given(_actions, st.text(max_size=12))
def test_a_line_is_an_action_of_the_form_or_an_error(actions: list[str], line: str) -> None:
    try:
        choice = parse_choice(line, actions)
    except ConfigError:
        return
    assert choice.action in actions
    assert line.strip().endswith(choice.text)
