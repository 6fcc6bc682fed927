"""`moot simulate`: HTTP server of the simulated model."""

from __future__ import annotations

import sys
from typing import Annotated

import typer


def simulate(
    context: typer.Context,
    port: Annotated[int, typer.Option(help="Port; 0 picks a free one.")] = 8000,
    host: Annotated[
        str, typer.Option(help="Address to listen on; a non-loopback address needs --token-env.")
    ] = "127.0.0.1",
    task: Annotated[str | None, typer.Option(help="Task with the gold labels (default: agents guess).")] = None,
    seed: Annotated[int, typer.Option(help="Random seed of replies and failures.")] = 0,
    latency_ms: Annotated[float, typer.Option(help="Latency of every reply, in milliseconds.")] = 0.0,
    jitter_ms: Annotated[float, typer.Option(help="Maximum random extra latency, in milliseconds.")] = 0.0,
    fail_rate: Annotated[float, typer.Option(help="Share of calls answered with 500, 0 to 1.")] = 0.0,
    rate_limit: Annotated[
        float | None, typer.Option(help="Maximum calls per minute; excess calls get 429 with rate-limit headers.")
    ] = None,
    garble_rate: Annotated[float, typer.Option(help="Share of replies with malformed JSON, 0 to 1.")] = 0.0,
    busy_rate: Annotated[float, typer.Option(help="Share of calls answered with 429, 0 to 1.")] = 0.0,
    cut_rate: Annotated[
        float, typer.Option(help="Share of calls whose connection closes within the response, 0 to 1.")
    ] = 0.0,
    hang_rate: Annotated[float, typer.Option(help="Share of calls that are never answered, 0 to 1.")] = 0.0,
    competence: Annotated[float | None, typer.Option(help="Competence of the agents, 0 to 1.")] = None,
    calibration: Annotated[float | None, typer.Option(help="Calibration of their confidence, 0 to 1.")] = None,
    stubbornness: Annotated[
        float | None, typer.Option(help="Stubbornness of the agents, 0 to 1; 1 never changes its answer.")
    ] = None,
    judge_noise: Annotated[float | None, typer.Option(help="Standard deviation of a judge's scores, 0 to 1.")] = None,
    reasoning_words: Annotated[int | None, typer.Option(help="Length of a reasoning in words.")] = None,
    hallucination_rate: Annotated[
        float | None, typer.Option(help="Share of replies with a hallucinated claim in their reasoning, 0 to 1.")
    ] = None,
    contentiousness_effect: Annotated[
        float | None, typer.Option(help="Effect of the prompt's contentiousness on agents, 0 to 1.")
    ] = None,
    confidence_signal: Annotated[
        float | None,
        typer.Option(help="Strength of the link between an argument's quality and its token probabilities, 0 to 1."),
    ] = None,
    unclear_rate: Annotated[
        float | None, typer.Option(help="Share of a claim debate's messages with neither AGREE nor DENY, 0 to 1.")
    ] = None,
    token_env: Annotated[
        str | None, typer.Option(help="Environment variable with the token that clients must send.")
    ] = None,
) -> None:
    """Serve the simulated model over HTTP with OpenAI's API."""
    from moot.actors.simulated.answer_key import AnswerKey
    from moot.actors.simulated.server.options import SimulateOptions
    from moot.actors.simulated.server.server import run_server
    from moot.actors.simulated.settings import SimulatedSettings
    from moot.deploy.runs.flag_parsers import flag_of
    from moot.deploy.runs.validation import validate_model
    from moot.protocols.tasks import open_task

    own = SimulatedSettings.model_fields.keys() - SimulateOptions.model_fields.keys()
    behaviour = {key: value for key, value in context.params.items() if key in own and value is not None}
    settings = validate_model(SimulatedSettings, behaviour, typed={key: flag_of(key) for key in behaviour})
    chosen = {key: value for key, value in context.params.items() if key in SimulateOptions.model_fields}
    typed = {key: flag_of(key) for key in chosen}
    options = validate_model(SimulateOptions, {**chosen, "settings": settings}, typed=typed)
    key = AnswerKey.from_cases(open_task(task).cases()) if task is not None else None

    def ready(number: int) -> None:
        print(f"simulated model at http://{host}:{number}/v1#simulated (Ctrl-C stops it)", flush=True)

    run_server(options, key, ready)
    print("stopped", file=sys.stderr)
