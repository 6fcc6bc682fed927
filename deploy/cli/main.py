"""The `moot` command. Nothing heavy is imported before a command runs, so that `--help` is quick."""

from __future__ import annotations

import errno
import os
import select
import sys
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from moot.deploy.cli import options, run

if TYPE_CHECKING:
    from typer.exceptions import TyperException

_CONTEXT = {"help_option_names": ["-h", "--help"]}
app = typer.Typer(
    name="moot",
    help="Language-model debates at scale.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings=_CONTEXT,
)


def main() -> NoReturn:
    """Entry point of the console script: prints a user error as one line and exits with code 2."""
    _open_standard_streams()
    _import_from_cwd()
    from typer.exceptions import Abort, TyperException

    from moot.protocols.errors import MootError, RecordError, UserError

    try:
        code = _command()(standalone_mode=False)
        sys.stdout.flush()
    except TyperException as error:
        if message := _message(error):
            context = getattr(error, "ctx", None)
            command = f" {context.info_name}" if context is not None and context.parent is not None else ""
            _print_error(f"{message.rstrip('.')}; see `moot{command} --help`")
        sys.exit(error.exit_code)
    except Abort:
        sys.exit(130)
    except MootError as error:
        from moot.actors.record.store.mirror import with_uris

        _print_error(with_uris(str(error)))
        sys.exit(2 if isinstance(error, UserError | RecordError) else 1)
    except OSError as error:
        if error.errno == errno.EPIPE and _has_no_reader():  # who read the output has read enough, as `head`
            _drop_output()
            sys.exit(1)
        if error.errno not in _OF_THE_MACHINE:
            raise
        if error.filename is None:
            _drop_output()
        how = "read or written" if error.errno == errno.EIO else "written"
        _print_error(f"{error.filename or 'the output'} cannot be {how}: {error.strerror}")
        sys.exit(2)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)
    sys.exit(code or 0)


_OF_THE_MACHINE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EFBIG)
"""Errors that say nothing about moot: a full, read-only or broken disk."""


def _has_no_reader() -> bool:
    """Whether standard output is a pipe whose reader has gone: a broken pipe may also be a connection of the command's
    own."""
    poll = select.poll()
    try:
        poll.register(sys.stdout.fileno(), 0)
    except (AttributeError, OSError, ValueError):  # it is closed, or no file
        return False
    return any(found & (select.POLLERR | select.POLLHUP) for _, found in poll.poll(0))


def _drop_output() -> None:
    """Discard what standard output still buffers: Python writes it again as it ends, and prints that failure, too."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _message(error: TyperException) -> str:
    """Text of a usage error, worded like the errors of a configuration."""
    from pydantic import ValidationError

    from moot.protocols.validation_messages import explain_error

    cause, flag = error.__cause__, getattr(error, "param", None)
    if flag is None or not error.message:
        return error.format_message()
    reason = explain_error(cause.errors(include_url=False)[0]) if isinstance(cause, ValidationError) else error.message
    return f"{' / '.join(flag.opts)}: {reason}"


def _print_error(message: str) -> None:
    """Print an error as one line on standard error, without credentials in URLs and without control characters."""
    from moot.actors.telemetry.redaction import without_credentials
    from moot.deploy.results.text import visible_line

    print(f"error: {visible_line(' '.join(without_credentials(message).split()))}", file=sys.stderr)


@cache
def _command() -> Any:
    """Command tree, cached: building it takes as long as a small command."""
    return typer.main.get_command(app)


def _open_standard_streams() -> None:
    """Open the null device in place of each standard stream that was closed: else a socket gets its number, and an
    event loop that closes the socket aborts the process."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 - open as long as the process


def _import_from_cwd() -> None:
    """Let `module:Class` names resolve in the current folder; nothing else is imported from there."""
    from moot.protocols.user_modules import LOOK_IN

    if not sys.flags.safe_path:
        with suppress(OSError):  # the folder was deleted
            LOOK_IN[:] = [os.getcwd()]


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"moot {version('moot')}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Language-model debates at scale."""


app.command(cls=run.Command)(run.run)


@app.command()
def calibrate(
    folder: options.Folder,
    holdout: Annotated[float, typer.Option(help="Share of held-out cases, between 0 and 1.")] = 0.5,
    seed: Annotated[int, typer.Option(help="Random seed of the split.")] = 0,
    tolerance: Annotated[float, typer.Option(help="Largest loss of accuracy for fewer tokens, 0 to 1.")] = 0.01,
    early_stop: Annotated[bool, typer.Option("--early-stop", help="Learn when to stop a reply early instead.")] = False,
    role: Annotated[str, typer.Option(help="With --early-stop: role of the replies.")] = "agent",
    share: Annotated[float, typer.Option(help="With --early-stop: share of replies to stop, at most 0.5.")] = 0.1,
    keep_truncated: options.KeepTruncated = False,
    form: options.Form = "text",
) -> None:
    """Choose the gate's thresholds from a run made with --set both_branches=true, or learn when to stop a reply early
    from a run with log-probabilities."""
    if early_stop:
        from moot.deploy.studies.calibration.early_stop import calibrate_early_stop
        from moot.deploy.studies.calibration.report import show_early_stop

        rule = calibrate_early_stop(
            folder, role=role, holdout=holdout, seed=seed, share=share, keep_truncated=keep_truncated
        )
        show_early_stop(rule, form)
        return
    from moot.deploy.studies.calibration.gate import calibrate as calibrated
    from moot.deploy.studies.calibration.report import show_calibration

    thresholds = calibrated(folder, holdout=holdout, seed=seed, tolerance=tolerance, keep_truncated=keep_truncated)
    show_calibration(thresholds, form)


@app.command()
def compare(
    folders: options.Folders,
    baseline: Annotated[
        str | None, typer.Option(help="Run that the others are compared with (default: the first).")
    ] = None,
    cases: Annotated[bool, typer.Option("--cases", help="List the cases that the runs answer differently.")] = False,
    form: options.Form = "text",
) -> None:
    """Compare runs over the same cases, case by case."""
    from moot.deploy.results.figures.comparison import compare as compared
    from moot.deploy.results.figures.comparison import comparison_blocks
    from moot.deploy.results.report.render import show_report

    comparison = compared(folders, baseline=baseline, cases=cases)
    show_report(comparison, lambda: comparison_blocks(comparison), form)


@app.command()
def explain(
    term: Annotated[
        list[str] | None, typer.Argument(help="Term or figure of a report, quoted or not (default: all).")
    ] = None,
) -> None:
    """Define a term or a figure of a report in one line."""
    from rich.console import Console

    from moot.deploy.results.glossary import explain as explained
    from moot.deploy.results.report.render import report_text

    Console().print(report_text([explained(" ".join(term) if term else None)]))


@app.command()
def encoders() -> None:
    """List the forms of an encoder's name."""
    from moot.actors.encoders.resolve import ENCODERS

    _columns(ENCODERS.items())


@app.command()
def tasks() -> None:
    """List the tasks."""
    from moot.protocols.tasks import TASKS

    _columns((kind.form, f"{kind.about}{f' ({kind.layout})' if kind.layout else ''}") for kind in TASKS.values())


@app.command()
def templates() -> None:
    """List the prompt templates, each with its slots."""
    from moot.protocols.templates import template_headers

    _columns((name, header.slots) for name, header in template_headers().items())


@app.command()
def protocols(
    name: Annotated[
        str | None,
        typer.Argument(help="A protocol or a preset: its settings, and what its paper states and leaves open."),
    ] = None,
) -> None:
    """List the protocols, or the settings of one of them."""
    from moot.deploy.cli.protocols import describe_protocol
    from moot.protocols.presets.preset import preset_names
    from moot.protocols.registry import PROTOCOLS

    if name is None:
        _columns((each, entry.description) for each, entry in PROTOCOLS.items())
        print(f"\npresets (`moot run --preset NAME`, `moot protocols NAME`): {', '.join(preset_names())}")
        return
    print("\n".join(describe_protocol(name)))


def _columns(rows: Any) -> None:
    pairs = list(rows)
    width = max(len(name) for name, _ in pairs)
    for name, about in pairs:
        print(f"{name:<{width}}  {about}")


def _add_others() -> None:
    from moot.deploy.cli import ablate, check, debate, judge, serve
    from moot.deploy.cli.analyze import analyze
    from moot.deploy.cli.decide import decide
    from moot.deploy.cli.models import doctor, models
    from moot.deploy.cli.plan import plan
    from moot.deploy.cli.report import report
    from moot.deploy.cli.show import show
    from moot.deploy.cli.simulate import simulate
    from moot.deploy.cli.train_classifier import train_classifier
    from moot.deploy.cli.verify import verify
    from moot.deploy.cli.view import view

    app.command(cls=ablate.Command)(ablate.ablate)
    app.command(cls=debate.Command)(debate.debate)
    app.command(cls=judge.Command)(judge.judge)
    app.command(cls=check.Command)(check.check)
    app.command(cls=serve.Command)(serve.serve)
    for command in (show, report, view, verify, analyze, decide, train_classifier, plan, models, doctor, simulate):
        app.command()(command)


_add_others()
