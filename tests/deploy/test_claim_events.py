"""The events of a real check of claims have the shapes that transcripts, and `moot check`, read them by."""

from __future__ import annotations

import io
import json
from typing import Any, get_args

import pyarrow.dataset as dataset
import pytest
from PIL import Image as Pillow
from pydantic import BaseModel

import moot
from moot.deploy.reading.report.blocks import Items
from moot.deploy.reading.transcripts.blocks import known_event
from moot.deploy.reading.transcripts.ceda import EvidenceData, EvidenceItem, RulingData, StanceData, StateData
from moot.deploy.reading.transcripts.views import EventView
from moot.protocols.ceda.items import Item

SHAPES: dict[str, type[BaseModel]] = {
    "evidence": EvidenceData,
    "stance": StanceData,
    "ruling": RulingData,
    "state": StateData,
}


def _picture(shade: int) -> bytes:
    drawn = io.BytesIO()
    Pillow.new("RGB", (8, 8), (shade, 0, 0)).save(drawn, "PNG")
    return drawn.getvalue()


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Of bundled claims, and of one with a passage, a document and pictures."""
    folder = tmp_path_factory.mktemp("runs")
    case = {
        "claim": "The bridge opened in 1932.",
        "label": True,
        "passage": "The bridge opened in 1932. It is made of steel.",
        "documents": ["The bridge opened in 1934."],
        "images": [_picture(1), _picture(2), _picture(1)],
    }
    found = []
    options: dict[str, Any] = {"engine": "inline", "protocol": "ceda", "limit": 8}
    runs: dict[str, dict[str, Any]] = {
        "bundled": {"task": "sample-claims"},
        "own": {"task": [case]},
        "context": {"task": [case], "set": {"context.by": "model"}},
    }
    for name, more in runs.items():
        assert moot.run(out=folder / name, **options, **more).failed == 0
        found += dataset.dataset(folder / name / "events").to_table().to_pylist()
    return [event for event in found if event["kind"] in SHAPES]


def _missing(shape: Any, data: Any, path: str) -> list[str]:
    """The fields of a shape, and of the shapes in it, that the data does not have: a default would hide them."""
    inner = [each for each in (shape, *get_args(shape)) if isinstance(each, type) and issubclass(each, BaseModel)]
    if not inner or data is None:
        return []
    if isinstance(data, list):
        return [gap for each in data for gap in _missing(inner[0], each, path)]
    fields = inner[0].model_fields
    gaps = [f"{path}.{name}" for name in fields if name not in data]
    for name in fields.keys() & data.keys():
        gaps += _missing(fields[name].annotation, data[name], f"{path}.{name}")
    return gaps


def test_every_event_fits_and_no_field_is_made_up(events: list[dict[str, Any]]) -> None:
    assert {event["kind"] for event in events} == SHAPES.keys()
    for event in events:
        data = json.loads(event["data"])
        shape = SHAPES[event["kind"]]
        shape.model_validate(data)
        assert _missing(shape, data, event["kind"]) == []


def test_every_event_is_shown_in_words(events: list[dict[str, Any]]) -> None:
    for event in events:
        view = EventView(kind=event["kind"], path=event["path"], data=json.loads(event["data"]))
        assert known_event(view) is not None, event


def test_places_are_in_the_words_of_the_prompts(events: list[dict[str, Any]]) -> None:
    items = [item for event in events if event["kind"] == "evidence" for item in json.loads(event["data"])["items"]]
    assert {item["kind"] for item in items} == {"passage", "document", "picture"}
    for item in items:
        assert EvidenceItem.model_validate(item).place == Item(**item).source


def test_a_picture_that_nobody_could_describe_is_named() -> None:
    data = {"items": [{"id": "E1", "kind": "picture", "picture": 0, "text": "A plate."}], "missing_pictures": [1]}
    shown = known_event(EventView(kind="evidence", path="evidence", data=data))
    assert shown is not None
    assert isinstance(last := shown[-1], Items)
    assert last.items[-1] == "picture 2 could not be described"
