"""Judging replies that were given elsewhere: `moot.judge`, and what it has in common with the command."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory
from typing import Any

from pydantic import ValidationError

from moot.actors.spec import Engine
from moot.deploy.reading.summaries.judged import Judging, judging
from moot.deploy.running.places import default_out
from moot.deploy.running.run import Role, run
from moot.deploy.running.single import engine_here
from moot.protocols.errors import ConfigError
from moot.protocols.rubrics.rubric import Rubric, read_rubric, shipped_rubric
from moot.protocols.tasks import Task
from moot.protocols.tasks.replies import replies_in_memory

PROTOCOL = "judge-panel"
_BUNDLED = "sample-replies"


def judge(
    replies: str | Path | Iterable[Mapping[str, object]],
    *,
    rubric: str | Path | Rubric | Mapping[str, Any] = "reasoning",
    judges: Role | Sequence[Role] = "simulated",
    passes: int = 1,
    seed: int = 0,
    out: str | Path | None = None,
    engine: Engine | None = None,
    address: str | None = None,
) -> Judging:
    """Have a panel of judges score replies, all in flight together; waits for the end.

    Args:
        replies: a file of them, `sample-replies`, or rows with the columns of such a file (`reply`; optional `id`,
            `prompt`, `system`, `evidence`, `role`, `domain`, `group`).
        rubric: the name of one that comes with the package, a YAML file, or a rubric as data.
        judges: one member or several: models' names, or bindings.
        passes: how often each judge reads each reply, 1 to 20.
        out: where the record is kept, and gone on with when it is there; None for nowhere.
        engine: None runs in this process, unless it has joined a Ray cluster: then there.

    Raises:
        UserError: one line about what is wrong; nothing was written.
        ConfigError: also when nothing was judged at all, because the run was stopped before.
    """
    settings = {"rubric": rubric_of(rubric).model_dump(mode="json"), "passes": passes}
    task: str | Task
    task = replies_spec(str(replies)) if isinstance(replies, str | Path) else replies_in_memory(replies)
    members = [judges] if isinstance(judges, str | Mapping) or not isinstance(judges, Sequence) else list(judges)
    with TemporaryDirectory(prefix="moot-") as scratch:
        done = run(
            task=task,
            protocol=PROTOCOL,
            roles={"judge": members},
            seed=seed,
            set=settings,
            out=out or Path(scratch) / "run",
            engine=engine or engine_here(),
            address=address,
        )
        found = judging(done.path)
    if found is None:
        raise ConfigError(f"no reply was judged: {done.stopped_by or done.status}")
    return found


def rubric_of(named: str | Path | Rubric | Mapping[str, Any]) -> Rubric:
    """A rubric by the name of a shipped one, from a YAML file, or from data.

    Raises:
        ConfigError: there is no such rubric, or it is none.
    """
    if isinstance(named, Rubric):
        return named
    if isinstance(named, Mapping):
        try:
            return Rubric.model_validate(named)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(str(part) for part in first["loc"])
            raise ConfigError(f"rubric: `{where}`: {first['msg'].removeprefix('Value error, ')}") from None
    path = Path(named).expanduser()
    if isinstance(named, Path) or path.suffix.lower() in (".yaml", ".yml") or len(path.parts) > 1:
        return read_rubric(path)
    return shipped_rubric(named)


def replies_spec(named: str) -> str:
    """The task behind what `moot judge` is given: a file, `-` for standard input, or the bundled replies.

    >>> replies_spec("sample-replies"), replies_spec("mine.jsonl")
    ('sample-replies', 'replies:mine.jsonl')
    """
    bundled = named == _BUNDLED and not Path(named).exists()
    return named if bundled else f"replies:{named}"


def judge_out(named: str, rubric: Rubric, seed: int, model: str) -> str:
    """Where judging goes unless it is told: the same command finds the same folder again.

    >>> from moot.protocols.rubrics.rubric import shipped_rubric
    >>> judge_out("data/mine.jsonl", shipped_rubric("factual"), 0, "simulated")
    'runs/judge-mine-factual-s0'
    """
    stem = "stdin" if named == "-" else PurePath(named).stem
    return default_out("judge", f"{stem}-{rubric.name}", seed, model)
