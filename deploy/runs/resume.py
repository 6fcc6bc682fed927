"""run.yaml: a run's configuration and sessions, and the checks before a resume."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any

import msgspec
import structlog

from moot.actors.models.prices import Price
from moot.actors.record.folder import RunFolder
from moot.actors.record.referenced_files import CLASSIFIER_CARD, template_file
from moot.actors.record.run_yaml import REMARKS, read_run_yaml
from moot.actors.record.schema import SCHEMA_VERSION
from moot.actors.record.sealed_yaml import seal_yaml
from moot.actors.record.tables import read_raw_rows
from moot.deploy.runs.limits import lost, spent_by_earlier_sessions, unsettled_usage
from moot.deploy.runs.prepare import Prepared
from moot.deploy.runs.run_config import RunConfig
from moot.deploy.runs.run_library import recorded_library_path
from moot.deploy.runs.versions import code_revision, installed_versions
from moot.protocols.errors import RunMismatch
from moot.protocols.registry import PROTOCOLS

_log = structlog.get_logger(__name__)

_PACKAGES = ("moot", "ray", "pydantic", "msgspec", "numpy", "pyarrow", "openai", "anthropic", "aiohttp", "jinja2")
_ENGINES = ("xllamacpp",)
"""Packages whose version changes the replies of a built-in model."""

_FIXED = ("protocol", "seed", "save_tokens", "encoder", "classifier_digest", "schema_version")
_CHANGEABLE_ROLE_KEYS = frozenset({"timeout_s", "api_key_env", "profile"})
_EARLIER_SETTINGS = {
    "answer_first": True,
    "context": {"by": "rules"},
    "crit.rivals": "printed",
    "crit.weak_below": 1.0,
    "crit_scope": "latest",
    "debate.failed_openings": "leave-out",
    "debate.show_confidence": True,
    "evidence": {"passages": 5},  # SELENE read no documents, which differs only where a case or the run has some
    "gate.if_untested": "debate",  # it was `ignore`, which differs only where a test cannot be made
    "gate.require_complete": False,
    "kappa": {"start": 0.9, "delta": 1.2},
    "openings": "blind",
    "order": "given",
    "panel": "topics",
    "passages": 0,
    "sections": "always",
    "topics.ask_balance": False,
}
"""Value of a setting by which runs behaved whose record predates the setting."""

_EARLIER_ROLE_SETTINGS = {"reasoning_tokens": 4000, "stop": [], "extra": {}}
"""The same for a role's keys; None for all others."""

_MAX_LISTED = 8
"""Maximum number of differences listed in an error."""


def describe(prepared: Prepared) -> dict[str, Any]:
    """Content of run.yaml without its sessions, as plain data without secrets."""
    templates = prepared.templates
    return {
        "schema_version": SCHEMA_VERSION,
        **_configuration(prepared.config),
        **_own_name(prepared),
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
        "templates": {name: templates.hash(name) for name in _rendered(prepared)},
        "task_digest": prepared.checked.digest if prepared.checked else None,
        **_documents(prepared),
        "cases": prepared.total,
        **({"classifier_digest": prepared.classifier.card.digest} if prepared.classifier else {}),
        "versions": dict(installed_versions(*_PACKAGES, *_ENGINES)),
        "code_revision": code_revision(),
    }


def _own_name(prepared: Prepared) -> dict[str, str]:
    """Name of a user's own protocol; a subclass of a built-in one that has no name of its own is `module:Class`."""
    name = prepared.protocol.name
    return {} if name == prepared.config.protocol or name in PROTOCOLS else {"protocol_name": name}


def _rendered(prepared: Prepared) -> dict[str, str]:
    """Name and text of every template that the run may render."""
    return {name: text for name, text in prepared.templates.sources.items() if prepared.protocol.renders(name)}


def _configuration(config: RunConfig) -> dict[str, Any]:
    fields = config.model_dump(mode="json", exclude_none=True)
    fields["roles"] = {family: ms[0] if len(ms) == 1 else ms for family, ms in fields["roles"].items()}
    return fields


def identity_digest(prepared: Prepared) -> str:
    """Digest (16 hex digits) of everything that must be equal to resume a run, except the limit."""
    body = describe(prepared)
    compared = {key: body.get(key) for key in (*_FIXED, "settings", "templates", "task_digest", "docs_digest")}
    compared["roles"] = _comparable(body["bindings"])
    return blake2b(msgspec.json.encode(compared, order="deterministic"), digest_size=8).hexdigest()


def _documents(prepared: Prepared) -> dict[str, Any]:
    if prepared.docs is None or prepared.library is None:
        return {}
    return {"docs_digest": prepared.docs.digest, "library": recorded_library_path(prepared.library, prepared.folder)}


_TEMPLATES = "templates:"
"""Beginning of the difference that names changed templates."""


def check_configuration_unchanged(
    was: Mapping[str, Any], now: Mapping[str, Any], out: str, new_run_flag: str = "--out NEW", *, reuses: bool = True
) -> None:
    """Check that a run has the configuration of its record, so that it can be resumed.

    Placement, engine, address, concurrency, attendance, retrying, paths of the task's file and of documents, deadlines,
    environment variables of keys and a larger limit may differ.

    Args:
        was: the recorded content of run.yaml.
        now: the present content, see `describe`.
        out: the run's folder, as the user gave it.
        new_run_flag: the flag that starts a new run.
        reuses: whether there is also a flag `--reuse`.

    Raises:
        RunMismatch: they differ; lists old and new values.
    """
    changes = list(differences(was, now))
    if not changes:
        return
    more = f"; and {len(changes) - _MAX_LISTED} more" if len(changes) > _MAX_LISTED else ""
    mismatch = f"{out} contains a run with a different configuration: {'; '.join(changes[:_MAX_LISTED])}{more}."
    if was.get("reuse") is not None and now.get("reuse") is None:  # otherwise free replies would be paid for, unnoticed
        raise RunMismatch(f"{mismatch} Give --reuse {was['reuse']} again, or start a new run with {new_run_flag}")
    hint = f" --reuse {out}: only what differs is paid for" if reuses else ""
    own_prompts = reuses and changes[0].startswith(_TEMPLATES) and "://" not in out
    first = f"Continue with its own prompts, --prompts {out}/prompts, or start" if own_prompts else "Start"
    raise RunMismatch(f"{mismatch} {first} a new one with {new_run_flag}{hint}")


def check_resumable(prepared: Prepared, new_run_flag: str = "--out NEW", *, reuses: bool = True) -> bool:
    """Check that the folder can be resumed or is new; returns whether it contains a run.

    For the flags see `check_configuration_unchanged`.

    Raises:
        RunMismatch: the folder contains a run with a different configuration.
    """
    folder = RunFolder(prepared.folder)
    if not folder.exists():
        return False
    check_configuration_unchanged(
        read_run_yaml(folder), describe(prepared), str(prepared.config.out), new_run_flag, reuses=reuses
    )
    return True


def differences(was: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """Differences that prevent a resume, as `key: was X, now Y`; the templates first, in one line."""
    old, new = was.get("templates") or {}, now.get("templates") or {}
    rewritten = sorted(name for name in old.keys() & new.keys() if old[name] != new[name])
    if rewritten:  # first, because another version of moot differs in them
        more = f" and {len(rewritten) - _MAX_LISTED} more" if len(rewritten) > _MAX_LISTED else ""
        yield f"{_TEMPLATES} {', '.join(rewritten[:_MAX_LISTED])}{more} have changed"
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
    """Bindings without the keys that may change on a resume, and with values for keys that an older record lacks."""
    return {
        family: [
            {key: value for key, value in (_EARLIER_ROLE_SETTINGS | member).items() if key not in _CHANGEABLE_ROLE_KEYS}
            for member in members
        ]
        for family, members in (bindings or {}).items()
    }


def _listed(docs: Any) -> str:
    return ", ".join(map(str, docs or ())) or "none"


def _leaves(key: str, was: Any, now: Any) -> Iterator[str]:
    was = _EARLIER_SETTINGS.get(key) if was is None else was
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
    """Members of a role as model names; any other value unchanged."""
    if isinstance(value, list) and value and all(isinstance(each, Mapping) and "model" in each for each in value):
        return ", ".join(str(member["model"]) for member in value)
    return value


def _changed(key: str, was: Any, now: Any) -> str:
    return f"{key}: was {_brief(was)}, now {_brief(now)}"


def _brief(value: Any) -> str:
    text = value if isinstance(value, str) else "none" if value is None else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


class RunYaml:
    """Writer of run.yaml for one session: writes it at the start and at the end of the session.

    Args:
        folder: the run's folder, owned by this process.
        prepared: the run.
        epoch: the owner's epoch.

    Attributes:
        earlier: the previous sessions.
    """

    def __init__(self, folder: RunFolder, prepared: Prepared, epoch: int) -> None:
        self._folder = folder
        old = read_run_yaml(folder) if folder.exists() else {}
        self._content = describe(prepared)
        if old:
            check_configuration_unchanged(old, self._content, str(prepared.config.out))
            for key in ("versions", "code_revision", "templates"):
                self._content[key] = old.get(key, self._content[key])
            self._content |= {key: True for key in REMARKS if old.get(key)}
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
            sources = _rendered(prepared)
            folder.put_all({template_file(name): source.encode() for name, source in sources.items()})
        if prepared.classifier is not None:  # readers need it even if the folder moves
            folder.put(CLASSIFIER_CARD, prepared.classifier.card.to_json())
        self._write()

    def stopped_by(self, why: str) -> None:
        """Set the stop reason, written by `finish`; ignored if empty."""
        if why:
            self._session["stopped_by"] = why

    def finish(self, status: str) -> None:
        """Record the session's status and duration."""
        self._session["wall_s"] = round(time.monotonic() - self._started, 3)
        self._session["status"] = status
        self._write()

    def _write(self) -> None:
        self._folder.put("run.yaml", seal_yaml(self._content))


def used(prepared: Prepared) -> dict[str, float]:
    """Use of all sessions of a run by budget (`tokens`, `usd`): an upper bound, also after a kill.

    Raises:
        RecordError: the record cannot be read.
    """
    folder = RunFolder(prepared.folder)
    content = read_run_yaml(folder) if folder.exists() else {}
    return spent_by_earlier_sessions(folder, prepared.prices, _earlier(content, folder, prepared.prices))


def _earlier(content: Mapping[str, Any], folder: RunFolder, prices: Mapping[str, Price]) -> list[dict[str, Any]]:
    """Earlier sessions in run.yaml, each with its final status."""
    sessions = [session for session in content.get("sessions") or [] if isinstance(session, dict)]
    if _lost_ledger(content, folder, sessions):
        _log.warning(
            "limits.json is lost: what a killed session had reserved for calls is unknown, and not in the budget",
            folder=str(folder.path),
        )
    return [_closed(session, folder, prices, sessions[:number]) for number, session in enumerate(sessions)]


def _lost_ledger(content: Mapping[str, Any], folder: RunFolder, sessions: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a budget's ledger is not there, although a session with replies was killed, which had written it."""
    has_budget = any(content.get(name) is not None for name in ("max_tokens", "max_cost_usd"))
    was_killed = bool(sessions) and sessions[-1].get("status") == "running"
    if not has_budget or not was_killed or folder.get("limits.json") is not None:
        return False
    return any(batch.num_rows for batch in read_raw_rows(folder, "turns", ["reply_id"]))


def _closed(
    session: Mapping[str, Any], folder: RunFolder, prices: Mapping[str, Price], before: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """An earlier session; one that is still `running` was killed, and its open reservations may have been used."""
    epoch = int(session.get("epoch") or 0)
    if session.get("status") == "running":
        status = {"status": "killed"}
        unsettled = unsettled_usage(folder.path, epoch, spent_by_earlier_sessions(folder, prices, before))
    else:
        status, unsettled = {}, lost(folder.path, epoch)
    return {**session, **status, **({"unsettled": unsettled} if unsettled else {})}


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
