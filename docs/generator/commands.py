"""The page of commands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from typer.main import get_command

from generator.markdown import code, page, prose, table
from generator.settings import shown_default
from moot.deploy.cli.main import app


def commands_page() -> str:
    """Every command of the command line with its arguments and options."""
    root: Any = get_command(app)
    parts = [prose(root.help), "`moot --version` prints the version; `-h` and `--help` explain each command."]
    for name, command in root.commands.items():
        if not command.hidden:
            parts += [f"## `moot {name}`", prose(command.help), *_parameters(command)]
    return page("# Commands", *parts)


def _parameters(command: Any) -> Iterator[str]:
    given = command.get_params(command.context_class(command, info_name=command.name))
    shown = [each for each in given if not each.hidden and each.name != "help"]
    arguments = [each for each in shown if each.param_type_name == "argument"]
    words = [_placeholder(each) for each in arguments]
    yield f"```text\nmoot {' '.join([command.name, *words, '[OPTIONS]'])}\n```"
    rows = [(code(_placeholder(each)), "", prose(each.help or "")) for each in arguments]
    for each in shown:
        if each.param_type_name != "argument":
            names = " ".join(code(name) for name in [*each.opts, *each.secondary_opts])
            default = "" if each.default in (None, (), []) or each.is_flag else code(shown_default(each.default))
            rows.append((names, default, prose(each.help or "")))
    if rows:
        yield table(("argument or option", "default", "meaning"), rows)


def _placeholder(argument: Any) -> str:
    name = argument.metavar or argument.name.upper()
    name += "..." if argument.nargs != 1 and "..." not in name else ""
    return name if argument.required or name.startswith("[") else f"[{name}]"
