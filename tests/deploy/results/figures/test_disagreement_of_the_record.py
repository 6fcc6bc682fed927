"""D of every round follows from the Parquet files alone, by the recipe of the documentation."""

from __future__ import annotations

import json
from hashlib import blake2b
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from planted_records import InlineRun

Rows = list[dict[str, Any]]


def rows_of(run: Path, table: str) -> Rows:
    rows: Rows = pq.read_table(run / table).to_pylist()
    return rows


def mean_distance(vectors: list[np.ndarray[Any, Any]]) -> float:
    cosines = [a @ b / np.linalg.norm(a) / np.linalg.norm(b) for a, b in combinations(vectors, 2)]
    return float(np.mean([1 - each for each in cosines]))


@pytest.mark.parametrize("protocol", ["selene", "always-debate"])
def test_d_is_the_mean_distance_of_the_named_vectors(inline_run: InlineRun, protocol: str) -> None:
    run = inline_run(protocol)
    vectors = {(e["case_id"], e["text_hash"]): np.array(e["vector"], np.float64) for e in rows_of(run, "embeddings")}
    rounds = set()
    for event in rows_of(run, "events"):
        if event["kind"] in ("gate", "round"):
            data = json.loads(event["data"])
            hashes = data["embedded"] if event["kind"] == "gate" else data["embedded"].values()
            assert mean_distance([vectors[event["case_id"], each] for each in hashes]) == pytest.approx(
                data["d"], abs=1e-6
            )
            rounds.add(event["path"])
    assert {"gate", "round/1", "round/2"} <= rounds


def test_the_hash_is_of_question_reasoning_and_answer(inline_run: InlineRun) -> None:
    run = inline_run("always-debate")
    cases = {row["case_id"]: row for row in rows_of(run, "cases")}
    last: dict[tuple[str, str], str] = {}
    for turn in rows_of(run, "turns"):
        if turn["path"].startswith("round/") and turn["answer"] is not None:
            case, reply = cases[turn["case_id"]], json.loads(turn["data"])
            choice = dict(zip(case["labels"] or (), case["choices"], strict=False)).get(turn["answer"])
            said = turn["answer"] + (f") {choice}" if choice else "")
            text = "\n".join([case["question"], reply["reasoning"], said])
            last[turn["case_id"], turn["path"]] = blake2b(text.encode(), digest_size=16).hexdigest()
    found = [
        (last[event["case_id"], f"{event['path']}/{agent}"], named)
        for event in rows_of(run, "events")
        if event["kind"] == "round" and (data := json.loads(event["data"]))
        for agent, named in data["embedded"].items()
        if agent not in data["failed"]
    ]
    assert len(found) > 100
    assert all(hashed == named for hashed, named in found)
