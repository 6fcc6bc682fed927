"""None of pydantic's own wording reaches the user."""

from __future__ import annotations

import pickle
from typing import Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from moot.protocols.reply_parsing import InvalidReply
from moot.protocols.validation_messages import explain_error


class Inner(BaseModel):
    """A part."""

    x: int = 0


class Every(BaseModel):
    """One field of each kind of constraint."""

    model_config = ConfigDict(extra="forbid")

    needed: int = 0
    share: float = Field(default=0.5, gt=0.0, le=1.0)
    count: int = Field(default=1, ge=1, lt=10)
    finite: float = Field(default=0.0, allow_inf_nan=False)
    flag: bool = False
    name: str = Field(default="a", min_length=1, max_length=3, pattern="^a")
    names: list[str] = Field(default=["a"], min_length=1, max_length=2)
    pair: tuple[int, ...] = ()
    kind: Literal["one", "two"] = "one"
    inner: Inner = Inner()
    table: dict[str, int] = {}
    own: int = 0

    @field_validator("own")
    @classmethod
    def _is_even(cls, own: int) -> int:
        if own % 2:
            raise ValueError("expected an even number")
        return own


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"needed": "x"}, "expected a whole number, not 'x'"),
        ({"share": 0}, "expected more than 0, not 0"),
        ({"share": 1.5}, "expected at most 1, not 1.5"),
        ({"count": 10}, "expected less than 10, not 10"),
        ({"finite": float("inf")}, "expected a finite number, not inf"),
        ({"flag": "perhaps"}, "expected true or false, not 'perhaps'"),
        ({"name": ""}, "expected at least 1 character, not ''"),
        ({"name": "b"}, "expected text of the form ^a, not 'b'"),
        ({"name": None}, "expected text, not None"),
        ({"names": []}, "expected at least 1 item"),
        ({"names": ["a"] * 3}, "expected at most 2 items"),
        ({"names": "a"}, "expected a list, not 'a'"),
        ({"kind": "three"}, "expected 'one' or 'two', not 'three'"),
        ({"inner": 3}, "expected names with values, not 3"),
        ({"table": []}, "expected names with values"),
        ({"own": 3}, "expected an even number, not 3"),
        ({"unknown": 3}, "is not known here"),
    ],
)
def test_errors_are_explained_in_plain_words(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Every.model_validate(given)
    assert explain_error(caught.value.errors(include_url=False)[0]) == said


def test_both_wordings_survive_pickling() -> None:
    error = pickle.loads(pickle.dumps(InvalidReply("told", "plain")))
    assert (str(error), error.plain, InvalidReply("told").plain) == ("told", "plain", "told")
