"""Preparation of a grid: every cell is checked before the first one starts."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moot.actors.record.files import write_whole
from moot.actors.record.folder import RunFolder
from moot.actors.record.sealed_yaml import seal_yaml
from moot.actors.record.store.uri import is_uri
from moot.deploy.runs.checks import check_models
from moot.deploy.runs.model_trials import TrialResults
from moot.deploy.runs.prepare import Prepared, prepare
from moot.deploy.runs.resume import describe
from moot.deploy.runs.run_config import RunConfig, read_sealed
from moot.deploy.runs.run_folders import default_out, run_name
from moot.deploy.runs.run_library import LibraryCache
from moot.deploy.runs.session import outcome_if_complete
from moot.deploy.studies.ablation.grid import Axis, Cell, cell_config, cells_of
from moot.protocols.errors import ConfigError, RunMismatch, TaskFileError, UserError
from moot.protocols.tasks import Task, open_task

_IDENTIFYING = ("protocol", "seed", "encoder", "settings", "bindings")
"""Keys of a run's description that distinguish cells."""


@dataclass(frozen=True)
class ReadyCell:
    """Cell with its checked run.

    Attributes:
        same_as: name of the cell whose run this one shares, because their settings are equivalent; empty for a cell
            with a run of its own.
    """

    cell: Cell
    prepared: Prepared
    same_as: str = ""


def prepare_grid(
    base: RunConfig, axes: Sequence[Axis], *, share_replies: bool = False, task: Task | None = None
) -> list[ReadyCell]:
    """Prepare every cell of a grid; writes nothing, calls no model.

    Args:
        base: common configuration of the cells; its `out` is the grid's folder, by default in `runs/`.
        share_replies: whether later cells reuse the replies of the first one.
        task: cases as objects, instead of `base.task`.

    Raises:
        UserError: the first error, in one line that names the cell.
    """
    if base.out is not None and is_uri(base.out):
        raise ConfigError(f"--out {base.out}: a grid needs a local folder; `moot run` writes single runs to a bucket")
    opened = open_task(base.task) if task is None else task
    if not opened.replayable:
        raise ConfigError(f"task {opened.spec!r}: every cell reads it again; put it into a file")
    if share_replies and base.reuse is not None:
        raise ConfigError("--share-replies and --reuse exclude each other: a run reuses the replies of one other run")
    if share_replies and any(axis.key == "seed" for axis in axes):
        raise ConfigError("--share-replies: with --over seed the cells need replies of their own; leave one out")
    out = find_grid_folder(base, axes, share_replies=share_replies, task=opened)
    grid, shared_libraries = [], LibraryCache(out)
    for cell in cells_of(axes):
        with _naming(cell):
            config = cell_config(base, cell, out)
            grid.append(ReadyCell(cell, prepare(config, task=task, shared_libraries=shared_libraries)))
    _check_different(grid)
    grid = _share_equal_runs(grid)
    return _reuse_first(grid) if share_replies else grid


def _check_different(grid: Sequence[ReadyCell]) -> None:
    """Refuse identical cells, which would be paid for twice and count as two measurements."""
    names: dict[str, str] = {}
    for each in grid:
        identity = _identity(each.prepared, describe(each.prepared)["settings"])
        if identity in names:
            raise ConfigError(
                f"cells {names[identity]} and {each.cell.name} are the same run: leave one of the values out"
            )
        names[identity] = each.cell.name


def _identity(prepared: Prepared, settings: Mapping[str, Any]) -> str:
    """Identity of a run with these settings."""
    described = {**describe(prepared), "settings": dict(settings)}
    return json.dumps([described[key] for key in _IDENTIFYING], sort_keys=True, default=str)


def _share_equal_runs(grid: Sequence[ReadyCell]) -> list[ReadyCell]:
    """Cells of which those that differ only in settings without effect share one run.

    The shared run is that of a started cell, if there is one, else that of the first cell.
    """
    owner: dict[str, str] = {}
    identities = [_identity(each.prepared, _effective_settings(each.prepared)) for each in grid]
    started = [RunFolder(each.prepared.folder).exists() for each in grid]
    for index in sorted(range(len(grid)), key=lambda index: not started[index]):
        owner.setdefault(identities[index], grid[index].cell.name)
    return [
        each if owner[identity] == each.cell.name else dataclasses.replace(each, same_as=owner[identity])
        for each, identity in zip(grid, identities, strict=True)
    ]


def _effective_settings(prepared: Prepared) -> Mapping[str, Any]:
    """Effective settings of the protocol by its `effective_settings()`, else all settings."""
    effective = prepared.protocol.effective_settings()
    return prepared.settings if effective is None else effective


def cells_to_run(grid: Iterable[ReadyCell]) -> list[ReadyCell]:
    """Cells with a run of their own."""
    return [each for each in grid if not each.same_as]


def _reuse_first(grid: Sequence[ReadyCell]) -> list[ReadyCell]:
    """Cells of which all but the first reuse its replies; the first need not have started yet."""
    first, cells = cells_to_run(grid)[0].prepared, list[ReadyCell]()
    for each in grid:
        config = each.prepared.config.model_copy(update={"reuse": first.config.out})
        reusing = dataclasses.replace(each.prepared, config=config, reuse=first.folder)
        cells.append(each if each.prepared is first else dataclasses.replace(each, prepared=reusing))
    return cells


def check_grid(grid: Sequence[ReadyCell], *, network: bool = True) -> list[ReadyCell]:
    """Check that every cell can start or resume, and run trial calls of its models, except for finished cells.

    Args:
        network: whether to call models.

    Returns:
        The cells with the profiles of their models; cells with equal requests to a model share one trial.

    Raises:
        UserError: the first error, in one line that names the cell.
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
    """Whether any case has a gold label, so that accuracy is known; reads the cases up to the first one."""
    return any(labelled.gold is not None for labelled in grid[0].prepared.cases())


def without_reuse(prepared: Prepared, grid: Sequence[ReadyCell]) -> Prepared:
    """Run of a cell without the replies of the first cell, which may not exist yet."""
    first = cells_to_run(grid)[0].prepared
    return dataclasses.replace(prepared, reuse=None) if prepared.reuse == first.folder else prepared


def grid_folder(grid: Sequence[ReadyCell]) -> Path:
    """Parent folder of the cells' folders, as the user gave it."""
    return Path(str(grid[0].prepared.config.out)).expanduser().parent


@contextmanager
def _naming(cell: Cell) -> Iterator[None]:
    """Context that prefixes errors with the cell's name, except those of the common task."""
    try:
        yield
    except TaskFileError:
        raise
    except UserError as error:
        raise type(error)(f"cell {cell.name}: {error}") from error


_NAME = "grid.yaml"


def find_grid_folder(base: RunConfig, axes: Sequence[Axis], *, share_replies: bool, task: Task) -> str:
    """Folder of the grid, if a grid over these keys can start or resume there.

    A resumed grid may have additional values, which are additional cells.

    Raises:
        ConfigError: the folder is that of a run, or its grid file cannot be read or is damaged.
        RunMismatch: the folder has a grid over other keys, or one whose cells share replies, unlike these.
    """
    keys = [axis.key for axis in axes]
    protocol_name = [] if "protocol" in keys else [run_name(base.protocol, base.preset)]
    out = base.out or default_out("-".join(["ablate", *protocol_name, *keys]), task.name, base.seed, base.model)
    folder = Path(out).expanduser()
    if RunFolder(folder).exists():
        raise ConfigError(f"--out {out}: this is a run's folder; name another folder for the cells")
    existing = read_sealed(folder / _NAME) if (folder / _NAME).exists() else {"over": dict.fromkeys(keys)}
    over = existing.get("over")
    if not isinstance(over, Mapping):
        raise ConfigError(f"{folder / _NAME}: `over`: expected the keys of the grid with their values")
    if sorted(map(str, over)) != sorted(keys):
        raise RunMismatch(f"{out} contains a grid over {', '.join(map(str, over))}; start another with --out NEW")
    if existing.get("share_replies") and not share_replies:
        raise RunMismatch(f"{out} contains a grid whose cells share replies: give --share-replies again, or --out NEW")
    return out


def write_grid_file(folder: str | Path, axes: Sequence[Axis], baseline: Cell, *, share_replies: bool) -> None:
    """Write the grid file: varied keys, baseline, and whether cells share replies.

    Raises:
        RecordError: the file cannot be written.
    """
    content: dict[str, Any] = {
        "over": {axis.key: [value.text for value in axis.values] for axis in axes},
        "baseline": baseline.name,
        "share_replies": share_replies,
    }
    write_whole(Path(folder).expanduser() / _NAME, seal_yaml(content))
