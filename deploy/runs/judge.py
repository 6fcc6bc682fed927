"""Judging of existing replies: `moot.judge`, and functions shared with the command."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory
from typing import Any

from moot.actors.debate.run_spec import Engine
from moot.deploy.results.figures.judges import JudgingSummary, summarise_judging
from moot.deploy.runs.run import Role, run
from moot.deploy.runs.run_folders import default_out
from moot.deploy.runs.single_debate import default_engine
from moot.protocols.errors import ConfigError
from moot.protocols.rubrics.rubric import Rubric, read_rubric, rubric_of_data, shipped_rubric
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
    out: str | Path | None = None,
    engine: Engine | None = None,
    **options: Any,
) -> JudgingSummary:
    """Score replies with a panel of judges, concurrently; returns when all are scored.

    Args:
        replies: a file of them, `sample-replies`, or rows with the columns of such a file (`reply`; optional `id`,
            `prompt`, `system`, `evidence`, `role`, `domain`, `group`).
        rubric: the name of a built-in rubric, a YAML file, or a rubric as data.
        judges: one or several models' names or bindings.
        passes: passes of each judge over each reply, 1 to 20.
        out: the record's folder, resumed if it exists; None keeps no record.
        engine: `ray` or `inline`; None means `ray` if this process has joined a Ray cluster, else `inline`.
        options: as for `moot.run`, such as `seed`.

    Raises:
        UserError: the input is invalid, or a model cannot be used; nothing was written.
        ConfigError: also if no reply was judged, because the run was stopped.
    """
    task: str | Task
    task = replies_spec(str(replies)) if isinstance(replies, str | Path) else replies_in_memory(replies)
    with TemporaryDirectory(prefix="moot-") as scratch:
        fixed = {"task": task, "out": out or Path(scratch) / "run", "engine": engine or default_engine()}
        done = run(**{**options, **panel(rubric_of(rubric), judges, passes), **fixed})
        summary = summarise_judging(done.path)
    if summary is None:
        raise ConfigError(f"no reply was judged: {done.stopped_by or done.status}")
    return summary


def panel(rubric: Rubric, judges: Role | Sequence[Role], passes: int) -> dict[str, Any]:
    """Options of a run in which judges score replies under a rubric."""
    members = [judges] if isinstance(judges, str | Mapping) or not isinstance(judges, Sequence) else list(judges)
    settings = {"rubric": rubric.model_dump(mode="json"), "passes": passes}
    return {"protocol": PROTOCOL, "roles": {"judge": members}, "set": settings}


def rubric_of(source: str | Path | Rubric | Mapping[str, Any]) -> Rubric:
    """Load a rubric: a built-in one by name, from a YAML file, or from data.

    Raises:
        ConfigError: there is no such rubric, or it is invalid.
    """
    if isinstance(source, Rubric):
        return source
    if isinstance(source, Mapping):
        return rubric_of_data(source)
    path = Path(source).expanduser()
    if isinstance(source, Path) or path.suffix.lower() in (".yaml", ".yml") or len(path.parts) > 1:
        return read_rubric(path)
    return shipped_rubric(source)


def replies_spec(source: str) -> str:
    """Task spec of a file of replies, of `-` for standard input, or of the bundled replies.

    >>> replies_spec("sample-replies"), replies_spec("mine.jsonl")
    ('sample-replies', 'replies:mine.jsonl')
    """
    bundled = source == _BUNDLED and not Path(source).exists()
    return source if bundled else f"replies:{source}"


def default_judge_out(source: str, rubric: Rubric, seed: int, model: str) -> str:
    """Default folder of a judging run, the same for the same command.

    >>> from moot.protocols.rubrics.rubric import shipped_rubric
    >>> default_judge_out("data/mine.jsonl", shipped_rubric("factual"), 0, "simulated")
    'runs/judge-mine-factual-s0'
    """
    stem = "stdin" if source == "-" else PurePath(source).stem
    return default_out("judge", f"{stem}-{rubric.name}", seed, model)
