"""Public Python API of moot. Names are imported on first use, so that `import moot` loads neither Ray nor any SDK."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from moot.actors.agent.roles import RoleBinding
    from moot.actors.encoders.resolve import ENCODERS
    from moot.actors.models.pictures import load_image
    from moot.actors.models.resolve import MODELS
    from moot.actors.record.progress import StreamedEvent
    from moot.actors.record.signals import Signals
    from moot.actors.retrieval.documents.library import Library, index
    from moot.deploy.results.figures.comparison import compare
    from moot.deploy.results.figures.summary import Summary, summarise
    from moot.deploy.results.figures.token_confidence import AnalysisSettings
    from moot.deploy.results.show import show
    from moot.deploy.runs.checking.check import check
    from moot.deploy.runs.checking.check_result import Checked
    from moot.deploy.runs.judge import judge
    from moot.deploy.runs.outcome import Run
    from moot.deploy.runs.ray_data.stages import DebateStage, JudgeStage, debate_dataset
    from moot.deploy.runs.recorded_run import open_run
    from moot.deploy.runs.run import arun, run, stream
    from moot.deploy.runs.run_config import RunConfig
    from moot.deploy.runs.single_debate import Debated, debate
    from moot.deploy.studies.ablation.ablate import ablate
    from moot.deploy.studies.analysis.analyze import Analysis, analyze
    from moot.deploy.studies.calibration.gate import calibrate
    from moot.deploy.studies.planning.plan import RunPlan, plan
    from moot.deploy.studies.training.train import train_classifier
    from moot.protocols.base import DebateProtocol
    from moot.protocols.case import Case, Image, LabelledCase
    from moot.protocols.errors import ConfigError, MootError, UserError
    from moot.protocols.floor import Brief, Floor, Request
    from moot.protocols.lookups import Passage
    from moot.protocols.messages import Event, Failure, Form, Turn, Verdict
    from moot.protocols.registry import PROTOCOLS
    from moot.protocols.replies import Position, Score
    from moot.protocols.tasks import TASKS, Task, open_task

_NAMES_BY_MODULE = {
    "moot.actors.encoders.resolve": ("ENCODERS",),
    "moot.actors.models.pictures": ("load_image",),
    "moot.actors.models.resolve": ("MODELS",),
    "moot.actors.record.progress": ("StreamedEvent",),
    "moot.actors.record.signals": ("Signals",),
    "moot.actors.agent.roles": ("RoleBinding",),
    "moot.deploy.studies.analysis.analyze": ("Analysis", "analyze"),
    "moot.deploy.results.figures.token_confidence": ("AnalysisSettings",),
    "moot.deploy.studies.calibration.gate": ("calibrate",),
    "moot.deploy.runs.checking.check": ("check",),
    "moot.deploy.runs.checking.check_result": ("Checked",),
    "moot.deploy.runs.ray_data.stages": ("DebateStage", "JudgeStage", "debate_dataset"),
    "moot.actors.retrieval.documents.library": ("Library", "index"),
    "moot.deploy.results.figures.comparison": ("compare",),
    "moot.deploy.runs.run_config": ("RunConfig",),
    "moot.deploy.runs.judge": ("judge",),
    "moot.deploy.runs.outcome": ("Run",),
    "moot.deploy.runs.recorded_run": ("open_run",),
    "moot.deploy.runs.run": ("arun", "run", "stream"),
    "moot.deploy.studies.ablation.ablate": ("ablate",),
    "moot.deploy.studies.planning.plan": ("RunPlan", "plan"),
    "moot.deploy.results.show": ("show",),
    "moot.deploy.runs.single_debate": ("Debated", "debate"),
    "moot.deploy.results.figures.summary": ("Summary", "summarise"),
    "moot.deploy.studies.training.train": ("train_classifier",),
    "moot.protocols.case": ("Case", "Image", "LabelledCase"),
    "moot.protocols.errors": ("ConfigError", "MootError", "UserError"),
    "moot.protocols.base": ("DebateProtocol",),
    "moot.protocols.floor": ("Brief", "Floor", "Request"),
    "moot.protocols.lookups": ("Passage",),
    "moot.protocols.messages": ("Event", "Failure", "Form", "Turn", "Verdict"),
    "moot.protocols.registry": ("PROTOCOLS",),
    "moot.protocols.replies": ("Position", "Score"),
    "moot.protocols.tasks": ("TASKS", "Task", "open_task"),
}
_MODULE_OF = {name: module for module, names in _NAMES_BY_MODULE.items() for name in names}

__all__ = [
    "ENCODERS",
    "MODELS",
    "PROTOCOLS",
    "TASKS",
    "Analysis",
    "AnalysisSettings",
    "Brief",
    "Case",
    "Checked",
    "ConfigError",
    "DebateProtocol",
    "DebateStage",
    "Debated",
    "Event",
    "Failure",
    "Floor",
    "Form",
    "Image",
    "JudgeStage",
    "LabelledCase",
    "Library",
    "MootError",
    "Passage",
    "Position",
    "Request",
    "RoleBinding",
    "Run",
    "RunConfig",
    "RunPlan",
    "Score",
    "Signals",
    "StreamedEvent",
    "Summary",
    "Task",
    "Turn",
    "UserError",
    "Verdict",
    "ablate",
    "analyze",
    "arun",
    "calibrate",
    "check",
    "compare",
    "debate",
    "debate_dataset",
    "index",
    "judge",
    "load_image",
    "open_run",
    "open_task",
    "plan",
    "run",
    "show",
    "stream",
    "summarise",
    "train_classifier",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("moot")
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'moot' has no attribute {name!r}")
    value = getattr(import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})
