"""A grid made ready: every cell is found good before the first one starts."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moot.actors.record.folder import RunFolder, write_whole
from moot.actors.record.run_yaml import yaml_text
from moot.actors.record.store.uri import is_uri
from moot.deploy.runs.checks import TrialResults, check_models
from moot.deploy.runs.config import RunConfig, read_yaml
from moot.deploy.runs.prepare import Prepared, prepare, unwrap_protocol
from moot.deploy.runs.resume import describe
from moot.deploy.runs.run_folders import default_out, run_name
from moot.deploy.runs.run_library import LibraryCache
from moot.deploy.runs.session import outcome_if_complete
from moot.deploy.studies.ablation.grid import Axis, Cell, cell_config, cells_of
from moot.protocols.errors import ConfigError, RunMismatch, TaskFileError, UserError
from moot.protocols.tasks import open_task

_TELLING = ("protocol", "seed", "encoder", "settings", "bindings")
"""What of a run's description tells one cell from another."""


@dataclass(frozen=True)
class ReadyCell:
    """A cell whose run has been found good.

    Attributes:
        same_as: the name of the cell whose run serves this one, too, as their settings come to the same; empty for a
            cell that has a run of its own.
    """

    cell: Cell
    prepared: Prepared
    same_as: str = ""


def prepare_grid(base: RunConfig, axes: Sequence[Axis], *, share_replies: bool = False) -> list[ReadyCell]:
    """Open and check everything that the cells name; writes nothing, asks nobody.

    Args:
        base: what the cells share; its `out` is the grid's folder, by default in `runs/`.
        share_replies: later cells reuse the first one's replies.

    Raises:
        UserError: one line for the first thing that is wrong, and in which cell.
    """
    if base.out is not None and is_uri(base.out):
        raise ConfigError(f"--out {base.out}: a grid lies in a folder; with `moot run` single runs go to a bucket")
    if not open_task(base.task).replayable:
        raise ConfigError(f"task {base.task!r}: every cell reads it anew; put it into a file")
    if share_replies and base.reuse is not None:
        raise ConfigError("--share-replies and --reuse contradict each other: a run reuses the replies of one other")
    if share_replies and any(axis.key == "seed" for axis in axes):
        raise ConfigError("--share-replies: with --over seed the cells are to have replies of their own; leave one out")
    out = find_grid_folder(base, axes, share_replies=share_replies)
    grid, shelf = [], LibraryCache(out)
    for cell in cells_of(axes):
        with _naming(cell):
            grid.append(ReadyCell(cell, prepare(cell_config(base, cell, out), shelf=shelf)))
    _check_different(grid)
    grid = _served(grid)
    return _sharing(grid) if share_replies else grid


def _check_different(grid: Sequence[ReadyCell]) -> None:
    """Two cells that are the same run would be paid for twice, and be counted as two measurements."""
    names: dict[str, str] = {}
    for each in grid:
        mark = _mark(each.prepared, describe(each.prepared)["settings"])
        if mark in names:
            raise ConfigError(f"cells {names[mark]} and {each.cell.name} are the same run: leave one of the values out")
        names[mark] = each.cell.name


def _mark(prepared: Prepared, settings: Mapping[str, Any]) -> str:
    """Equal for runs that these settings would make the same."""
    told = {**describe(prepared), "settings": dict(settings)}
    return json.dumps([told[key] for key in _TELLING], sort_keys=True, default=str)


def _served(grid: Sequence[ReadyCell]) -> list[ReadyCell]:
    """The cells, those that differ only in settings without an effect served by one run: one that has begun before
    others, then the first."""
    served_by: dict[str, str] = {}
    marks = [_mark(each.prepared, _effective_settings(each.prepared)) for each in grid]
    begun = [RunFolder(each.prepared.folder).exists() for each in grid]
    for place in sorted(range(len(grid)), key=lambda place: not begun[place]):
        served_by.setdefault(marks[place], grid[place].cell.name)
    return [
        each if served_by[mark] == each.cell.name else dataclasses.replace(each, same_as=served_by[mark])
        for each, mark in zip(grid, marks, strict=True)
    ]


def _effective_settings(prepared: Prepared) -> Mapping[str, Any]:
    """What the protocol says of its settings by `effective_settings()`; all of them when it says nothing."""
    says: Callable[[], Mapping[str, Any]] | None = getattr(
        unwrap_protocol(prepared.protocol), "effective_settings", None
    )
    return prepared.settings if says is None else says()


def cells_to_run(grid: Iterable[ReadyCell]) -> list[ReadyCell]:
    """Those with a run of their own."""
    return [each for each in grid if not each.same_as]


def _sharing(grid: Sequence[ReadyCell]) -> list[ReadyCell]:
    """The cells, the replies of all but the first taken from that one's, which need not have begun yet."""
    first, sharing = cells_to_run(grid)[0].prepared, list[ReadyCell]()
    for each in grid:
        config = each.prepared.config.model_copy(update={"reuse": first.config.out})
        reusing = dataclasses.replace(each.prepared, config=config, reuse=first.folder)
        sharing.append(each if each.prepared is first else dataclasses.replace(each, prepared=reusing))
    return sharing


def check_grid(grid: Sequence[ReadyCell], *, network: bool = True) -> list[ReadyCell]:
    """Check that every cell can be held or gone on with, and ask its models; those of finished cells are not asked.

    Args:
        network: False asks nobody.

    Returns:
        The cells with what was found of their models: of cells that ask a model for the same, by one trial.

    Raises:
        UserError: one line for the first thing that is wrong, and in which cell.
    """
    unfinished = set()
    for each in cells_to_run(grid):
        with _naming(each.cell):
            asyncio.run(check_models(without_reuse(each.prepared, grid), network=False))
            if outcome_if_complete(each.prepared) is None:
                unfinished.add(each.cell.name)
    trials, checked = TrialResults(), list[ReadyCell]()
    for each in grid:
        with _naming(each.cell):
            asked = network and each.cell.name in unfinished
            prepared = asyncio.run(check_models(each.prepared, trials=trials)) if asked else each.prepared
            checked.append(dataclasses.replace(each, prepared=prepared))
    return checked


def has_gold(grid: Sequence[ReadyCell]) -> bool:
    """Whether any case has a gold label, so that an accuracy can be known; reads the cases up to the first that has."""
    return any(labelled.gold is not None for labelled in grid[0].prepared.cases())


def without_reuse(prepared: Prepared, grid: Sequence[ReadyCell]) -> Prepared:
    """A cell's run without the first cell's replies, which may not be there yet."""
    first = cells_to_run(grid)[0].prepared
    return dataclasses.replace(prepared, reuse=None) if prepared.reuse == first.folder else prepared


def grid_folder(grid: Sequence[ReadyCell]) -> Path:
    """The folder that holds the cells' folders, as it was named."""
    return Path(str(grid[0].prepared.config.out)).expanduser().parent


@contextmanager
def _naming(cell: Cell) -> Iterator[None]:
    """An error about one cell begins with its name; a task's file is every cell's."""
    try:
        yield
    except TaskFileError:
        raise
    except UserError as error:
        raise type(error)(f"cell {cell.name}: {error}") from error


_NAME = "grid.yaml"


def find_grid_folder(base: RunConfig, axes: Sequence[Axis], *, share_replies: bool) -> str:
    """Where the cells' folders lie, if a grid over these keys can begin or go on there.

    Values may be added when a grid is gone on with: they are further cells.

    Raises:
        ConfigError: a run lies there, or what the folder says of its grid cannot be read.
        RunMismatch: a grid over other keys lies there, or one whose cells share replies, as these do not.
    """
    keys = [axis.key for axis in axes]
    named = [] if "protocol" in keys else [run_name(base.protocol, base.preset)]
    task = open_task(base.task)
    out = base.out or default_out("-".join(["ablate", *named, *keys]), task.name, base.seed, base.model)
    folder = Path(out).expanduser()
    if RunFolder(folder).exists():
        raise ConfigError(f"--out {out}: a run lies there; name another folder for the cells")
    known = read_yaml(folder / _NAME) if (folder / _NAME).exists() else {"over": dict.fromkeys(keys)}
    if sorted(known.get("over") or ()) != sorted(keys):
        raise RunMismatch(f"{out} holds a grid over {', '.join(known.get('over') or ())}; start another with --out NEW")
    if known.get("share_replies") and not share_replies:
        raise RunMismatch(f"{out} holds a grid whose cells share replies: give --share-replies again, or --out NEW")
    return out


def write_grid_file(folder: str | Path, axes: Sequence[Axis], baseline: Cell, *, share_replies: bool) -> None:
    """Say in the grid's folder what its cells are.

    Raises:
        RecordError: it cannot be written.
    """
    content: dict[str, Any] = {
        "over": {axis.key: [value.text for value in axis.values] for axis in axes},
        "baseline": baseline.name,
        "share_replies": share_replies,
    }
    write_whole(Path(folder).expanduser() / _NAME, yaml_text(content).encode())
