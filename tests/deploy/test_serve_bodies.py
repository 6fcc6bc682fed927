"""Bodies that clients send to the service, damaged at random: a case, or a refusal that says why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.deploy.running.open_run import OpenRun
from moot.deploy.running.task import as_task
from moot.deploy.serving.bodies import case_of
from moot.deploy.serving.refusals import Refused
from moot.deploy.serving.requests import Asked, CheckRequest, DebateRequest, JudgmentRequest
from moot.protocols.case import LabelledCase

BODIES: dict[type[Asked], dict[str, Any]] = {
    DebateRequest: {"id": "a", "question": "Is it?", "labels": ["Yes", "No"], "documents": ["one"], "passage": "two"},
    JudgmentRequest: {"reply": "It is.", "prompt": "Is it?", "role": "agent"},
    CheckRequest: {"claim": "It is.", "documents": ["one", "two"], "images": []},
}


class _AnyCase:
    """An open run whose protocol has a use for every case."""

    def labelled(self, case: Mapping[str, object] | LabelledCase) -> LabelledCase:
        """See `OpenRun.labelled`."""
        return next(as_task([case]).cases())


def _read(body: bytes, model: type[Asked]) -> None:
    try:
        labelled, content = case_of(body, model, cast(OpenRun, _AnyCase()))
    except Refused as error:
        refused = error
    else:
        assert labelled.case.id
        assert content == labelled.case.content_hash()
        return
    assert 400 <= refused.status_code < 500
    assert refused.detail


@pytest.mark.parametrize("model", BODIES)
@given(data=st.data())
def test_a_damaged_body_is_refused_or_a_case(model: type[Asked], data: Any) -> None:
    raw = msgspec.json.encode(BODIES[model])
    _read(raw, model)
    at = data.draw(st.integers(0, len(raw) - 1))
    junk = data.draw(
        st.binary(min_size=1, max_size=9) | st.sampled_from([b"[" * 3000, b"9" * 5000, b"\\ud800", b"NaN"])
    )
    _read(raw[:at] + junk + raw[data.draw(st.integers(at, len(raw))) :], model)


@pytest.mark.parametrize("model", BODIES)
@given(body=st.binary(max_size=60) | st.sampled_from([b"[" * 100_000, b'{"question":' * 100_000, b'"' * 100_000]))
def test_any_bytes_are_refused(model: type[Asked], body: bytes) -> None:
    with pytest.raises(Refused):
        case_of(body, model, cast(OpenRun, _AnyCase()))
