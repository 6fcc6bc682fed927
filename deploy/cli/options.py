"""The options that several commands have: `moot run`, and what holds runs in its way."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer


def _record(named: str) -> Path:
    from moot.actors.record.store.mirror import record_path

    return record_path(named)


Folder = Annotated[
    Path,
    typer.Argument(help="A run's folder, or its URI.", metavar="FOLDER", parser=_record, show_default=False),
]
Folders = Annotated[
    list[Path],
    typer.Argument(help="Runs over the same cases.", metavar="FOLDERS...", parser=_record, show_default=False),
]
LabelledRuns = Annotated[
    list[Path],
    typer.Argument(help="Folders of runs with gold labels.", metavar="RUNS...", parser=_record, show_default=False),
]
JudgedRuns = Annotated[
    list[Path] | None,
    typer.Argument(help="Folders of runs whose replies were judged.", metavar="[RUNS]...", parser=_record),
]
File = Annotated[Path | None, typer.Argument(help="A YAML configuration; flags win over it.")]
Form = Annotated[str, typer.Option("--format", help="text, json or md.")]
TaskSpec = Annotated[
    str | None, typer.Option(help="NAME, NAME:PATH or a FILE of questions (default: sample); see `moot tasks`.")
]
Model = Annotated[str | None, typer.Option(help="Serves every role (default: simulated); see `moot models`.")]
Role = Annotated[list[str] | None, typer.Option(help="NAME=MODEL[,MODEL...]; repeatable.")]
Agents = Annotated[int | None, typer.Option(help="How many agents answer.")]
Limit = Annotated[int | None, typer.Option(help="Only the first so many cases.")]
Seed = Annotated[int | None, typer.Option(help="Everything random hangs on it (default: 0).")]
Encoder = Annotated[str | None, typer.Option(help="Embeds texts (default: auto); see `moot encoders`.")]
Classifier = Annotated[str | None, typer.Option(help="A folder made by `moot train-classifier`.")]
Docs = Annotated[
    list[str] | None, typer.Option(help="Documents to search: a file, a folder of them, or a library; repeatable.")
]
Preset = Annotated[str | None, typer.Option(help="What a paper states of its protocol; see `moot protocols NAME`.")]
Setting = Annotated[list[str] | None, typer.Option("--set", help="A setting, KEY=VALUE; repeatable.")]
Prompts = Annotated[str | None, typer.Option(help="A folder of templates that replace ours.")]
PlacementName = Annotated[str | None, typer.Option(help="actors (the default) or packed.")]
EngineName = Annotated[str | None, typer.Option(help="ray (the default), or inline for this process alone.")]
Address = Annotated[str | None, typer.Option(help="A Ray cluster, auto for the running one, local for a new one here.")]
Cluster = Annotated[
    list[str] | None, typer.Option(help="Where actors live, KEY=VALUE, such as moderators=8; repeatable.")
]
SaveTokens = Annotated[str | None, typer.Option(help="Log-probabilities: none, chosen or all (the default).")]
KeepTruncated = Annotated[bool, typer.Option("--keep-truncated", help="Count replies cut at their token limit, too.")]
SaveReasoning = Annotated[bool | None, typer.Option("--save-reasoning", help="Record models' hidden reasoning, too.")]
Reuse = Annotated[
    str | None, typer.Option(help="A run's folder: its replies answer equal asks, which then cost nothing.")
]
MaxOpen = Annotated[int | None, typer.Option(help="Most debates open at once (default: 200).")]
Structured = Annotated[
    str | None, typer.Option(help="Hold replies to JSON schemas: on, off, or auto (the default): where a model can.")
]
Temperature = Annotated[float | None, typer.Option(help="Of every role that a configuration gives none.")]
MaxReplyTokens = Annotated[
    int | None, typer.Option(help="Longest reply of every role that a configuration gives none.")
]
Concurrency = Annotated[int | None, typer.Option(help="Calls under way per model and server; by default it adapts.")]
RequestsPerMin = Annotated[int | None, typer.Option("--rpm", help="Requests per minute, likewise.")]
TokensPerMin = Annotated[int | None, typer.Option("--tpm", help="Tokens per minute, likewise.")]
MaxCostUsd = Annotated[float | None, typer.Option("--max-cost", help="Stop before it costs more (USD).")]
MaxTokens = Annotated[int | None, typer.Option(help="Stop before the run uses more tokens.")]
MaxMinutes = Annotated[float | None, typer.Option(help="Stop after so many minutes.")]
Prices = Annotated[str | None, typer.Option(help="A YAML file of prices, over our own.")]
DebateTimeoutS = Annotated[float | None, typer.Option("--debate-timeout", help="Fail a debate after so many seconds.")]
RetryFailed = Annotated[
    bool | None, typer.Option("--retry-failed/--no-retry-failed", help="A new attempt for failed cases.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show cases, calls and tokens; do nothing.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")]
LogLevel = Annotated[str, typer.Option(help="debug, info, warning or error.")]


def fields_of(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a run's configuration among a command's parameters; None where a flag was not given.

    Raises:
        ConfigError: a `--role`, `--set` or `--cluster` has another form, or is given twice.
    """
    from moot.deploy.running.config import RunConfig
    from moot.deploy.running.flags import parse_roles, parse_settings

    fields = {name: value for name, value in parameters.items() if name in RunConfig.model_fields}
    roles, settings, cluster = parameters["role"], parameters["set_"], parameters.get("cluster")
    return {
        **fields,
        "docs": fields.get("docs") or None,
        "roles": parse_roles(roles) if roles else None,
        "set": parse_settings(settings) if settings else None,
        "cluster": parse_settings(cluster, "--cluster", "moderators=8") if cluster else None,
    }
