"""Data files of a folder: from `datasets.save_to_disk`, or Parquet, JSON Lines or CSV as on the hub."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

from moot.protocols.errors import TaskFileError
from moot.protocols.regular_files import read_regular
from moot.protocols.tasks.row import shown

_STATE, _SPLITS = "state.json", "dataset_dict.json"
_DEEPEST, _MOST_ENTRIES = 4, 20_000
_SHARD = re.compile(r"(?P<split>.+?)(?:[-_.]\d{5}-of-\d{5}[-\w]*)?\.\w+", re.IGNORECASE)
_PARQUET, _TEXT = (".parquet",), (".jsonl", ".json", ".csv", ".tsv")
_ABOUT = frozenset({"dataset_info.json", "dataset_infos.json", "dataset_dict.json"})
"""Files of a data set on the hub that describe it and have no rows."""
_LARGEST_STATE = 2**24


def data_files(folder: str, split: str | None) -> list[tuple[str, Path]]:
    """Data files of a folder, each with its name for errors, in order.

    Args:
        folder: as the user named it.
        split: the part to read; None for a folder with one.

    Raises:
        TaskFileError: it has no such files, no such part, or several parts and none is named.
    """
    place = Path(folder).expanduser().absolute()
    try:
        if (place / _STATE).is_file():
            if split is not None:
                raise TaskFileError(folder, 0, "split", "expected no split: the folder holds one data set")
            return _saved(folder, place)
        if (place / _SPLITS).is_file():
            return _saved_split(folder, place, split)
        return _hub_files(folder, place, split)
    except OSError as error:
        raise TaskFileError(folder, 0, "", f"cannot be read: {error.strerror or error}") from None


def _saved(folder: str, place: Path) -> list[tuple[str, Path]]:
    """Arrow files in a data set's `state.json`; none may be outside of the folder."""
    entries = _json_object(folder, place / _STATE).get("_data_files")
    listed = entries if isinstance(entries, list) else []
    names = [entry.get("filename") if isinstance(entry, dict) else None for entry in listed]
    if not names:
        raise TaskFileError(f"{folder}/{_STATE}", 0, "_data_files", "expected a list of files, found none")
    files = []
    for name in names:
        if not isinstance(name, str) or Path(name).name != name or name in ("", ".", ".."):
            raise TaskFileError(f"{folder}/{_STATE}", 0, "_data_files", f"expected a file's name, found {shown(name)}")
        if not (place / name).is_file():
            raise TaskFileError(f"{folder}/{name}", 0, "", f"no such file, and {_STATE} lists it")
        files.append((f"{folder}/{name}", place / name))
    return files


def _saved_split(folder: str, place: Path, split: str | None) -> list[tuple[str, Path]]:
    entries = _json_object(folder, place / _SPLITS).get("splits")
    names = [name for name in entries if isinstance(name, str)] if isinstance(entries, list) else []
    chosen = _chosen(folder, names, split)
    if Path(chosen).name != chosen or not (place / chosen / _STATE).is_file():
        raise TaskFileError(f"{folder}/{chosen}", 0, "", f"expected a folder with {_STATE}, found none")
    return _saved(f"{folder}/{chosen}", place / chosen)


def _hub_files(folder: str, place: Path, split: str | None) -> list[tuple[str, Path]]:
    """Files of a folder by the split in their names, or their folders' names; text files where none is Parquet."""
    groups: dict[tuple[str, str], list[str]] = {}
    for name in _names_of(folder, place, _PARQUET) or _names_of(folder, place, _TEXT):
        parent, _, file = name.rpartition("/")
        found = _SHARD.fullmatch(file)
        assert found is not None
        part = found["split"]
        if part.isdigit():  # the hub's own conversion: SUBSET/SPLIT/0000.parquet
            parent, _, part = parent.rpartition("/")
        groups.setdefault((parent, part), []).append(name)
    if not groups:
        expected = (
            "expected a file, a folder that `datasets.save_to_disk` wrote, or one with Parquet, JSON Lines or CSV "
            "files; it is neither"
        )
        raise TaskFileError(folder, 0, "", expected)
    subsets = sorted({parent for parent, _ in groups})
    if len(subsets) > 1:
        sets = ", ".join(subset or "." for subset in subsets[:12])
        raise TaskFileError(folder, 0, "", f"holds several data sets ({sets}): name the folder of one")
    chosen = _chosen(folder, [part for _, part in groups], split)
    names = groups[subsets[0], chosen]
    if len(names) > 1 and not names[0].lower().endswith(_PARQUET):
        files = ", ".join(names[:12])
        raise TaskFileError(folder, 0, "", f"holds {chosen} in several text files ({files}): name one of them")
    return [(f"{folder}/{name}", place / name) for name in names]


def _names_of(folder: str, place: Path, endings: tuple[str, ...]) -> list[str]:
    return sorted(_found(folder, place, endings))


def _found(folder: str, place: Path, endings: tuple[str, ...]) -> Iterator[str]:
    seen = 0
    for root, folders, files in os.walk(place):
        inner = Path(root).relative_to(place)
        seen += len(files) + len(folders)
        if seen > _MOST_ENTRIES:
            raise TaskFileError(folder, 0, "", f"expected at most {_MOST_ENTRIES:,} files and folders in it")
        folders[:] = [] if len(inner.parts) >= _DEEPEST else [each for each in folders if not each.startswith(".")]
        for name in files:
            if Path(name).suffix.lower() in endings and not name.startswith(".") and name not in _ABOUT:
                yield (inner / name).as_posix()


def _chosen(folder: str, names: list[str], split: str | None) -> str:
    """Split of a folder to read: the named one, or the only one."""
    parts = sorted(set(names))
    if split is None and len(parts) == 1:
        return parts[0]
    if split in parts:
        return split
    there = ", ".join(parts[:12]) or "none"
    if split is None:
        example = "test" if "test" in parts else (parts or ["test"])[0]
        raise TaskFileError(folder, 0, "", f"has the splits {there}: name one, as in cases:{folder}:split={example}")
    raise TaskFileError(folder, 0, "split", f"expected one of {there}, found {shown(split)}")


def _json_object(folder: str, file: Path) -> dict[str, object]:
    raw = read_regular(file, _LARGEST_STATE)
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise TaskFileError(
            f"{folder}/{file.name}", 0, "", "expected one JSON object, as `datasets.save_to_disk` writes"
        )
    return found
