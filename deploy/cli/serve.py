"""`moot serve`: HTTP service of debates, judgments and checks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from moot.deploy.cli import generated_flags

if TYPE_CHECKING:
    from moot.deploy.service.settings import ServeConfig


Command = generated_flags.run_options(
    *("task", "limit", "classifier", "prompts", "cluster", "save_tokens", "save_reasoning", "reuse"),
    *("max_minutes", "attended", "retry_failed"),
    protocol="Protocol of debates (default: selene); see `moot protocols`.",
    out="Folder of the records (default: runs/serve).",
)


def serve(
    context: typer.Context,
    file: Annotated[Path | None, typer.Argument(help="A YAML configuration; flags override it.")] = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on; a non-loopback address needs --token-env.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port; 0 picks a free one.")] = 8000,
    token_env: Annotated[
        str | None, typer.Option(help="Environment variable with the token that clients must send.")
    ] = None,
    max_queued: Annotated[int | None, typer.Option(help="Maximum number of queued requests (default: 1000).")] = None,
    drain_s: Annotated[
        float | None, typer.Option(help="Seconds to drain open debates at shutdown (default: 30).")
    ] = None,
    judge_rubric: Annotated[
        str | None, typer.Option(help="Also serve judgments under this rubric: reasoning, factual or a YAML file.")
    ] = None,
    checks: Annotated[bool, typer.Option("--checks", help="Also serve checks of claims.")] = False,
) -> None:
    """Serve debates over HTTP, and optionally judgments and checks, until Ctrl-C. See docs/operate/serve.md."""
    from moot.deploy.service.process import run_server

    flags: dict[str, Any] = context.obj
    address = flags.pop("address")
    config = _config(file, context.params, flags)
    raise typer.Exit(run_server(config, host, port, address))


_DEBATE_FIELDS = ("protocol", "agents", "docs", "roles", "set")
"""Fields that do not apply to judgments; `docs` also applies to checks."""

_LIMITS_BY_KIND = ("concurrency", "requests_per_min", "tokens_per_min", "max_cost_usd", "max_tokens")
"""Limits that apply to each kind of request separately: with several kinds, the total is a multiple."""


def _config(file: Path | None, parameters: dict[str, Any], fields: dict[str, Any]) -> ServeConfig:
    """Configuration of the service: the file, overridden by the flags.

    Raises:
        ConfigError: a value is invalid, or a flag limits several kinds of request.
    """
    from moot.deploy.runs.flag_parsers import flag_of
    from moot.deploy.service.settings import ServeConfig
    from moot.protocols.errors import ConfigError

    base = ServeConfig.build(file)
    flags = {name: parameters[name] for name in ("max_queued", "drain_s", "token_env")}
    flags |= {name: fields.pop(name) for name in ("out", "max_open")}
    given = {key: value for key, value in fields.items() if value is not None}
    common = {key: value for key, value in given.items() if key not in _DEBATE_FIELDS}
    documents = {key: given[key] for key in ("docs",) if key in given}
    rubric, checks = parameters["judge_rubric"], parameters["checks"] or base.checks is not None
    sections: dict[str, dict[str, Any]] = {}
    if base.debates is not None:
        only_for_checks = documents if checks else {}
        sections["debates"] = {**base.debates, **{k: v for k, v in given.items() if k not in only_for_checks}}
    if base.judgments is not None or rubric is not None:
        sections["judgments"] = {**(base.judgments or {}), **common, **({} if rubric is None else {"rubric": rubric})}
    if checks:
        sections["checks"] = {**(base.checks or {}), **common, **documents}
    limit = next((name for name in _LIMITS_BY_KIND if name in given), None)
    if limit is not None and len(sections) > 1:
        raise ConfigError(
            f"{flag_of(limit)} would limit {' and '.join(sections)} separately: give it in a file, "
            f"`{list(sections)[-1]}: {{{limit}: ...}}`"
        )
    config = ServeConfig.build({**base.model_dump(exclude_unset=True), **sections}, flags, flag_of)
    return config.model_copy(update={"out": str(Path(config.out).expanduser().absolute())})
