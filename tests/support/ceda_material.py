"""Small input for complete CEDA runs: claims with passages and pictures, documents, and a trained classifier."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

from PIL import Image as Pillow

from moot.deploy.runs.run import run
from moot.deploy.studies.training.train import TrainingSettings, train_with_progress

COLOURS = ("red", "green", "blue")


def write_claims(folder: Path, count: int = 24, label_of: Callable[[int], int] = lambda n: n % 2) -> str:
    """Write a task of claims about bridges: every second one with a passage, two in three with one of three pictures.

    Args:
        label_of: function from a claim's number to its gold label, 1 for supported.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for number, colour in enumerate(COLOURS):
        written = io.BytesIO()
        Pillow.new("RGB", (30 + number, 20), colour).save(written, "PNG")
        (folder / f"{colour}.png").write_bytes(written.getvalue())
    rows = [
        {
            "id": f"bridge-{number:02d}",
            "claim": f"Bridge {number} opened in {1900 + number}.",
            "label": label_of(number),
            "passage": f"Bridge {number} opened in 1934, says the town." if number % 2 else "",
            "images": [f"{COLOURS[number % 3]}.png"] if number % 3 else [],
            "group": f"{label_of(number)}-{number // 2}",
            "category": ("old", "new")[label_of(number)],
        }
        for number in range(count)
    ]
    (folder / "claims.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return f"claims:{folder / 'claims.jsonl'}"


def write_documents(folder: Path, count: int = 24) -> str:
    """Write a folder of two documents, each with one paragraph for every bridge."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, year in (("notes.txt", 1900), ("handbook.md", 1901)):
        told = [f"Bridge {n} opened in {year + n}, and people came to see how it was done." for n in range(count)]
        (folder / name).write_text("\n\n".join(told))
    return str(folder)


def make_classifier(folder: Path) -> str:
    """Train a classifier on the bundled claims, checked by simulated models."""
    done = run(task="sample-claims", protocol="ceda", engine="inline", out=folder / "training")
    train_with_progress([done.path], folder / "clf", TrainingSettings())
    return str(folder / "clf")
