"""Flags of a command that runs debates, generated from the fields of `RunConfig` (`deploy/runs/run_config.py`)."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer
from typer.core import TyperCommand

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

ENGINE_HELP = "inline (in this process) or ray (default: inline; ray with --address or --placement)."
MULTI_CASE_FIELDS = ("task", "limit", "max_minutes", "max_unusable", "max_open", "attended", "debate_timeout_s")
"""Fields that a command with one debate does not take."""


def inline_options(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields with the engine filled in, by the default of a command that runs one debate."""
    clustered = fields["address"] or fields["placement"]
    return {**fields, "engine": fields["engine"] or ("ray" if clustered else "inline")}


def run_options(*without: str, **help_texts: str) -> type[TyperCommand]:
    """Class of a command that takes the fields of `RunConfig` as flags and passes them as `context.obj`.

    The options are built when a command is parsed or its help is shown, so that no other command pays for the import.

    Args:
        without: fields that the command does not take.
        help_texts: help text by field; replaces the field's description.
    """

    def field_options() -> list[Any]:
        return _typer_options(without, tuple(help_texts.items()))

    class RunCommand(TyperCommand):
        def get_params(self, ctx: Any) -> list[Any]:
            """The command's own parameters and those of the fields, before `--help`."""
            own = len(self.params)
            return [*self.params, *field_options(), *super().get_params(ctx)[own:]]

        def invoke(self, ctx: Any) -> Any:
            """Call the command with the given fields as its context's `obj`."""
            from moot.actors.telemetry.log import configure_terminal

            given = {option.name: ctx.params.pop(option.name) for option in field_options()}
            configure_terminal(given.pop("log_level"))
            ctx.obj = fields_of(given)
            return super().invoke(ctx)

    return RunCommand


@cache
def _typer_options(without: tuple[str, ...], help_texts: tuple[tuple[str, str], ...]) -> list[Any]:
    """Options of the fields, built by Typer from a function's parameters."""

    def options() -> None:
        """Callback whose signature has the fields as parameters."""

    command_app = typer.Typer(add_completion=False)
    level = Annotated[str, typer.Option(help="debug, info, warning or error.")]
    parameters = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
        for name, annotation in _annotations(dict(help_texts))
        if name not in without
    ]
    last = inspect.Parameter("log_level", inspect.Parameter.KEYWORD_ONLY, default="warning", annotation=level)
    options.__signature__ = inspect.Signature([*parameters, last])  # type: ignore[attr-defined]
    command_app.command()(options)
    return list(typer.main.get_command(command_app).params)


def _annotations(help_texts: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
    from moot.deploy.runs.flag_parsers import flags_of, help_of
    from moot.deploy.runs.run_config import RunConfig

    for name, info in RunConfig.model_fields.items():
        if flags := flags_of(name):
            yield name, Annotated[_typed(info), typer.Option(flags, help=help_texts.get(name) or help_of(name))]


def _typed(info: FieldInfo) -> Any:
    """Parameter type of a field; None means that the flag was not given."""
    if not isinstance(info.default, str | int | float | None):
        return list[str] | None
    if info.annotation is bool:
        return bool | None
    for number in (int, float):
        if number in (info.annotation, *get_args(info.annotation)):
            return number | None
    return str | None


def fields_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of `RunConfig` from the given flags; None where a flag was not given.

    Raises:
        ConfigError: a `--role`, `--set` or `--cluster` is malformed, or is given twice.
    """
    from moot.deploy.runs.flag_parsers import parse_roles, parse_settings

    roles, settings, cluster = given.get("roles"), given.get("set"), given.get("cluster")
    return {
        **given,
        "docs": given.get("docs") or None,
        "roles": parse_roles(roles) if roles else None,
        "set": parse_settings(settings) if settings else None,
        "cluster": parse_settings(cluster, "--cluster", "moderators=8") if cluster else None,
    }
