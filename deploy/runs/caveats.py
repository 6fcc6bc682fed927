"""Warnings about a valid run before it starts."""

from __future__ import annotations

from pathlib import PurePath

import structlog

from moot.actors.encoders.resolve import is_served
from moot.actors.telemetry.telemetry import untraceable
from moot.deploy.runs.bindings import self_judging_models
from moot.deploy.runs.nested_settings import nested
from moot.deploy.runs.prepare import Prepared
from moot.deploy.runs.prior_runs import better_encoder
from moot.deploy.runs.run_library import is_missing
from moot.protocols.tasks import Task

_log = structlog.get_logger(__name__)


def log_caveats(prepared: Prepared) -> None:
    """Log warnings about a run; call it after its models and encoder are checked."""
    if prepared.d_untested:
        _log.warning(
            "the gate does not test D: no gate.tau_d is known for this encoder; `moot calibrate` estimates one",
            encoder=prepared.config.encoder,
        )
    if prepared.compares_words:
        _log.warning(
            f"D compares words, not meaning: agents that agree in different words seem to disagree; {better_encoder()}",
            encoder=prepared.config.encoder,
        )
    if unread := nested(prepared.config.set).keys() & prepared.protocol.unread_settings:
        _log.warning(
            "settings without effect: a run with one agent has no debate, gate or judges"
            if prepared.settings.get("agents") == 1
            else "settings without effect, given the other settings",
            protocol=prepared.protocol.name,
            settings=sorted(unread),
        )
    both = self_judging_models(prepared.bindings, prepared.protocol)
    if both and prepared.protocol.judges_apart:
        _log.warning(
            "judges are also debaters and may favour themselves: choose other models with --role judge=MODEL",
            protocol=prepared.protocol.name,
            models=both,
        )
    for remark in prepared.checked.remarks if prepared.checked is not None else ():
        _log.warning(remark, file=prepared.task.path)
    for remark in prepared.columns.remarks(prepared.task.columns()):
        _log.warning(remark, file=prepared.task.path)
    if _begins_with_a_comment(prepared.task):
        _log.warning(
            "the first line begins with #: a .txt file has no comments, so it is debated like any other line",
            file=prepared.task.path,
        )
    if prepared.docs is not None and is_missing(prepared.config.docs):
        _log.warning("documents are missing: the run uses its existing library", docs=prepared.config.docs)
    if why := untraceable():
        _log.warning("the environment requests traces, but none is exported", why=why)
    bounded = prepared.config.max_cost_usd is not None or prepared.config.max_tokens is not None
    if bounded and is_served(prepared.config.encoder):
        _log.warning("calls for embeddings are not counted by the budgets", encoder=prepared.config.encoder)


def _begins_with_a_comment(task: Task) -> bool:
    """Whether a file with one subject per line begins with what looks like a comment."""
    one_a_line = task.spec.startswith("subjects:") and PurePath(task.path).suffix.lower() == ".txt"
    if not (one_a_line and task.replayable):
        return False
    first = next(iter(task.cases()), None)
    return first is not None and first.case.question.startswith("#")
