"""`moot models` and `moot doctor`: the forms of a model's name, and checks of the installation."""

from __future__ import annotations

from typing import Annotated

import typer


def models() -> None:
    """List the forms of a model's name, each with its declared capabilities."""
    from moot.actors.models.resolve import MODELS
    from moot.deploy.runs.capabilities import NOTES, forms, in_one_line

    for form, words in forms().items():
        print(f"{form}\n    {MODELS[form]}\n    {in_one_line(words)}")
        if form in NOTES:
            print(f"    ({NOTES[form]})")


def doctor(
    model: Annotated[
        str | None, typer.Option(help="Test this model by a few small calls, which may be billed.")
    ] = None,
    api_key_env: Annotated[str | None, typer.Option(help="Environment variable with the model's API key.")] = None,
    base_url: Annotated[
        str | None, typer.Option(help="URL of another server, for openai/NAME or anthropic/NAME.")
    ] = None,
    prices: Annotated[str | None, typer.Option(help="A YAML file of prices; overrides the built-in ones.")] = None,
    protocol: Annotated[str | None, typer.Option(help="Debate a few bundled cases under this protocol.")] = None,
    preset: Annotated[str | None, typer.Option(help="Debate a few bundled cases under this preset.")] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="A setting of the protocol, KEY=VALUE; repeatable.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=100, help="Number of bundled cases to debate.")] = 2,
) -> None:
    """Check the installation and, with --model, whether a model can be used.

    With --protocol or --preset the model also debates a few bundled cases, and a table counts its usable replies by
    prompt.
    """
    import asyncio

    from moot.actors.models.resolve import ModelBinding
    from moot.deploy.results.text import visible, visible_line
    from moot.deploy.runs.doctor import examine, machine
    from moot.deploy.runs.doctor_protocol import try_protocol
    from moot.deploy.runs.flag_parsers import flag_of, parse_settings
    from moot.deploy.runs.run_config import RunConfig
    from moot.deploy.runs.validation import validate_model
    from moot.protocols.errors import ConfigError

    debates = protocol is not None or preset is not None
    if debates and model is None:
        raise ConfigError(f"--{'protocol' if preset is None else 'preset'} needs --model")
    flags = {"protocol": protocol, "preset": preset, "set": parse_settings(set_ or ())}
    config = RunConfig.build(None, flags, flag_of)
    findings = list(machine())
    if model is not None:
        named = {"model": model, "api_key_env": api_key_env, "base_url": base_url}
        binding = validate_model(ModelBinding, named, typed={key: flag_of(key) for key in named})
        findings += asyncio.run(examine(binding, prices))
    width = max(len(each.subject) for each in findings)
    for each in findings:
        print(f"{each.state:<8}{each.subject:<{width}}  {visible_line(each.detail)}")
    if any(each.state == "failed" for each in findings):
        raise typer.Exit(2)
    if debates:
        trial = asyncio.run(try_protocol(binding, config, limit))
        print("", *map(visible, trial.lines()), sep="\n")
        raise typer.Exit(0 if trial.finished == trial.cases else 3)
