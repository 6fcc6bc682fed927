"""run.yaml: what a run was started with, who worked on it when, and whether it may be gone on with."""

from __future__ import annotations

import platform
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from hashlib import blake2b
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import msgspec

from moot.actors.classifiers.card import CARD
from moot.actors.models.prices import Price
from moot.actors.record.folder import RunFolder
from moot.actors.record.run_yaml import read_run_yaml, yaml_text
from moot.actors.record.schema import SCHEMA_VERSION
from moot.deploy.runs.bounds import lost, spent_by_earlier_sessions, unsettled_usage
from moot.deploy.runs.config import RunConfig
from moot.deploy.runs.prepare import Prepared
from moot.deploy.runs.run_library import recorded_library_path
from moot.protocols.errors import RunMismatch

_PACKAGES = ("moot", "ray", "pydantic", "msgspec", "numpy", "pyarrow", "openai", "anthropic", "aiohttp", "jinja2")
_ENGINES = ("xllamacpp",)
"""Packages whose version changes what a model of ours replies."""

_FIXED = ("protocol", "seed", "save_tokens", "encoder", "classifier_digest", "schema_version")
_FREE_OF_ROLES = frozenset({"timeout_s", "api_key_env", "profile"})
_BEFORE = {
    "answer_first": True,
    "context": {"by": "rules"},
    "crit.rivals": "printed",
    "crit_scope": "latest",
    "debate.failed_openings": "leave-out",
    "debate.show_confidence": True,
    "gate.require_complete": False,
    "kappa": {"start": 0.9, "delta": 1.2},
    "openings": "blind",
    "order": "given",
    "panel": "topics",
    "passages": 0,
    "sections": "always",
    "topics.ask_balance": False,
}
"""What runs did whose record is older than a setting."""

_ROLE_BEFORE = {"reasoning_tokens": 4000, "stop": [], "extra": {}}
"""The same of a role's keys; of those that are not here, None."""

_SHOWN = 8
"""Differences that an error names."""


def describe(prepared: Prepared) -> dict[str, Any]:
    """The body of run.yaml for a run, sessions aside; plain data without any secret."""
    templates = prepared.templates
    return {
        "schema_version": SCHEMA_VERSION,
        **_configuration(prepared.config),
        "settings": dict(prepared.settings),
        "bindings": {
            family: [member.model_dump(mode="json") for member in members]
            for family, members in prepared.bindings.items()
        },
        "models": {
            family: list(dict.fromkeys(member.model for member in members))
            for family, members in prepared.bindings.items()
        },
        "simulated": prepared.simulated,
        "price_table": {name: price.model_dump() for name, price in prepared.prices.items()},
        "templates": {name: templates.hash(name) for name in templates.sources},
        "task_digest": prepared.checked.digest if prepared.checked else None,
        **_documents(prepared),
        "cases": prepared.total,
        **({"classifier_digest": prepared.classifier.card.digest} if prepared.classifier else {}),
        "versions": dict(_versions()),
        "code_revision": _code_revision(),
    }


def _configuration(config: RunConfig) -> dict[str, Any]:
    shown = config.model_dump(mode="json", exclude_none=True)
    shown["roles"] = {family: ms[0] if len(ms) == 1 else ms for family, ms in shown["roles"].items()}
    return shown


def identity_digest(prepared: Prepared) -> str:
    """16 hex digits over all that must be equal for a run to be gone on with, its limit aside."""
    body = describe(prepared)
    compared = {key: body.get(key) for key in (*_FIXED, "settings", "templates", "task_digest", "docs_digest")}
    compared["roles"] = _comparable(body["bindings"])
    return blake2b(msgspec.json.encode(compared, order="deterministic"), digest_size=8).hexdigest()


def _documents(prepared: Prepared) -> dict[str, Any]:
    if prepared.docs is None or prepared.library is None:
        return {}
    return {"docs_digest": prepared.docs.digest, "library": recorded_library_path(prepared.library, prepared.folder)}


def check_configuration_unchanged(
    was: Mapping[str, Any], now: Mapping[str, Any], out: str, afresh: str = "--out NEW", *, reuses: bool = True
) -> None:
    """Refuse to go on with a run whose record another configuration has made.

    Placement, engine, address, how many are open, attendance, retrying, where the task's file and the documents lie,
    deadlines, the variables that hold keys and a larger limit may differ.

    Args:
        out: the run's folder, as it was named.
        afresh: the flag that begins another run.
        reuses: whether there is a flag `--reuse`, too.

    Raises:
        RunMismatch: naming what differs, old and new.
    """
    found = list(differences(was, now))
    if not found:
        return
    more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    known = f"{out} contains a run with a different configuration: {'; '.join(found[:_SHOWN])}{more}."
    if was.get("reuse") is not None and now.get("reuse") is None:  # what was free would be paid for, unseen
        raise RunMismatch(f"{known} Give --reuse {was['reuse']} again, or start a new run with {afresh}")
    paying = f" --reuse {out}: only what differs is paid for" if reuses else ""
    raise RunMismatch(f"{known} Start a new one with {afresh}{paying}")


def check_resumable(prepared: Prepared, afresh: str = "--out NEW", *, reuses: bool = True) -> bool:
    """Whether a run lies in the folder already; for the flags see `check_configuration_unchanged`.

    Raises:
        RunMismatch: another configuration has made it.
    """
    folder = RunFolder(prepared.folder)
    if not folder.exists():
        return False
    check_configuration_unchanged(
        read_run_yaml(folder), describe(prepared), str(prepared.config.out), afresh, reuses=reuses
    )
    return True


def differences(was: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """What resuming cannot allow, as `key: was X, now Y`; the templates first, in one line."""
    old, new = was.get("templates") or {}, now.get("templates") or {}
    rewritten = sorted(name for name in old.keys() & new.keys() if old[name] != new[name])
    if rewritten:  # nobody can set these as they were
        more = f" and {len(rewritten) - _SHOWN} more" if len(rewritten) > _SHOWN else ""
        yield f"templates: {', '.join(rewritten[:_SHOWN])}{more} have changed"
    for key in _FIXED:
        yield from _leaves(key, was.get(key), now.get(key))
    if was.get("task_digest") != now.get("task_digest"):
        yield from _leaves("task", was.get("task"), now.get("task"))
        yield _changed("task_digest", was.get("task_digest"), now.get("task_digest"))
    elif was.get("task_digest") is None:
        yield from _leaves("task", was.get("task"), now.get("task"))
    if was.get("docs_digest") != now.get("docs_digest"):
        yield from _leaves("docs", _listed(was.get("docs")), _listed(now.get("docs")))
        yield _changed("docs_digest", was.get("docs_digest"), now.get("docs_digest"))
    yield from _leaves("", was.get("settings") or {}, now.get("settings") or {})
    yield from _leaves("roles", _comparable(was.get("bindings")), _comparable(now.get("bindings")))
    if was.get("reuse") is not None and now.get("reuse") is None:
        yield _changed("reuse", was.get("reuse"), None)
    before, after = was.get("limit"), now.get("limit")
    had = was.get("cases") if before is None else before
    if after is not None and (had is None or after < had):
        yield _changed(
            "limit", "all cases" if before is None else before, f"{after} (only a larger limit can be resumed)"
        )


def _comparable(bindings: Any) -> dict[str, list[dict[str, Any]]]:
    """Bindings without what may change while a run is resumed, and with what an older record did not say."""
    return {
        family: [
            {key: value for key, value in (_ROLE_BEFORE | member).items() if key not in _FREE_OF_ROLES}
            for member in members
        ]
        for family, members in (bindings or {}).items()
    }


def _listed(docs: Any) -> str:
    return ", ".join(map(str, docs or ())) or "none"


def _leaves(key: str, was: Any, now: Any) -> Iterator[str]:
    was = _BEFORE.get(key) if was is None else was
    if isinstance(was, list) and isinstance(now, list) and len(was) == len(now) == 1:
        was, now = was[0], now[0]
    if isinstance(was, Mapping) and isinstance(now, Mapping):
        for inner in sorted({*was, *now}):
            yield from _leaves(f"{key}.{inner}" if key else str(inner), was.get(inner), now.get(inner))
    elif isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        for number, (old, new) in enumerate(zip(was, now, strict=True)):
            yield from _leaves(f"{key}.{number}", old, new)
    elif was != now:
        yield _changed(key, _models_of(was), _models_of(now))


def _models_of(value: Any) -> Any:
    """Members of a role by their models' names, where their number differs; anything else as it is."""
    if isinstance(value, list) and value and all(isinstance(each, Mapping) and "model" in each for each in value):
        return ", ".join(str(member["model"]) for member in value)
    return value


def _changed(key: str, was: Any, now: Any) -> str:
    return f"{key}: was {_brief(was)}, now {_brief(now)}"


def _brief(value: Any) -> str:
    text = value if isinstance(value, str) else "none" if value is None else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


class RunYaml:
    """The run.yaml of one session: written at its start, and once more at its end.

    Args:
        folder: owned by this process.
        prepared: the run.
        epoch: the owner's number.

    Attributes:
        earlier: the sessions before this one.
    """

    def __init__(self, folder: RunFolder, prepared: Prepared, epoch: int) -> None:
        self._folder = folder
        old = read_run_yaml(folder) if folder.exists() else {}
        self._content = describe(prepared)
        if old:
            check_configuration_unchanged(old, self._content, str(prepared.config.out))
            for key in ("versions", "code_revision", "templates"):
                self._content[key] = old.get(key, self._content[key])
        self._content["started_at"] = old.get("started_at") or _now()
        self._session: dict[str, Any] = {
            "epoch": epoch,
            "started_at": _now(),
            "wall_s": None,
            "status": "running",
            "engine": prepared.config.engine,
            "placement": prepared.config.placement,
            "moot": self._content["versions"].get("moot"),
        }
        self.earlier = _earlier(old, folder, prepared.prices)
        self._content["sessions"] = [*self.earlier, self._session]
        self._started = time.monotonic()
        if not old:
            sources = prepared.templates.sources
            folder.put_all({f"prompts/{name}.j2": source.encode() for name, source in sources.items()})
        if prepared.classifier is not None:  # what a reader must know of it, wherever its own folder goes
            folder.put(CARD, prepared.classifier.card.to_json())
        self._write()

    def stopped_by(self, why: str) -> None:
        """Note what stopped the session; nothing when it is empty."""
        if why:
            self._session["stopped_by"] = why

    def finish(self, status: str) -> None:
        """Write down how the session ended, and how long it took."""
        self._session["wall_s"] = round(time.monotonic() - self._started, 3)
        self._session["status"] = status
        self._write()

    def _write(self) -> None:
        self._folder.put("run.yaml", yaml_text(self._content).encode())


def used(prepared: Prepared) -> dict[str, float]:
    """What a run has used in all its sessions, by budget (`tokens`, `usd`); an upper bound, after a kill, too.

    Raises:
        RecordError: its record cannot be read.
    """
    folder = RunFolder(prepared.folder)
    content = read_run_yaml(folder) if folder.exists() else {}
    return spent_by_earlier_sessions(folder, prepared.prices, _earlier(content, folder, prepared.prices))


def _earlier(content: Mapping[str, Any], folder: RunFolder, prices: Mapping[str, Price]) -> list[dict[str, Any]]:
    """The sessions that a run.yaml lists, each with how it ended."""
    sessions = [session for session in content.get("sessions") or [] if isinstance(session, dict)]
    return [_closed(session, folder, prices, sessions[:number]) for number, session in enumerate(sessions)]


def _closed(
    session: Mapping[str, Any], folder: RunFolder, prices: Mapping[str, Price], before: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """An earlier session; one that never said how it ended was killed. What calls without an end had reserved may be
    spent."""
    epoch = int(session.get("epoch") or 0)
    if session.get("status") == "running":
        told = {"status": "killed"}
        unknown = unsettled_usage(folder.path, epoch, spent_by_earlier_sessions(folder, prices, before))
    else:
        told, unknown = {}, lost(folder.path, epoch)
    return {**session, **told, **({"unsettled": unknown} if unknown else {})}


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


@cache
def _versions() -> Mapping[str, str]:
    found = {"python": platform.python_version()}
    for package in (*_PACKAGES, *_ENGINES):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def _code_revision() -> str | None:
    """The commit of the checkout that the package runs from; None when it is installed elsewhere."""
    git = Path(__file__).resolve().parents[2] / ".git"
    try:
        head = (git / "HEAD").read_text().strip()
        name = head.removeprefix("ref: ")
        return head if name == head else (git / name).read_text().strip()
    except OSError:
        return None
