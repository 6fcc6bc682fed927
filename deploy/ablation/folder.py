"""A grid's folder: what it says of itself, and whether a grid can begin or go on there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from moot.actors.record.folder import RunFolder, write_whole
from moot.actors.record.run_yaml import yaml_text
from moot.deploy.ablation.grid import Axis, Cell
from moot.deploy.running.config import RunConfig, read_yaml
from moot.deploy.running.places import default_out, run_name
from moot.protocols.errors import ConfigError, RunMismatch
from moot.protocols.tasks import open_task

_NAME = "grid.yaml"


def folder_of(base: RunConfig, axes: Sequence[Axis], *, share_replies: bool) -> str:
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


def write_down(folder: str | Path, axes: Sequence[Axis], baseline: Cell, *, share_replies: bool) -> None:
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
