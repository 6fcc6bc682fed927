"""Every error of moot, in one tree.

MootError
├── UserError                 the user can mend it: one line, exit code 2
│   ├── ConfigError           a setting is unknown, malformed or contradicts another
│   ├── TaskFileError         a task's file: names file, line, field and what was expected
│   ├── MissingKey            an API key is not in the environment
│   ├── ModelUnavailable      a model's server cannot be reached or refuses us
│   ├── CapabilityMissing     the model cannot do what the protocol needs
│   ├── RunFolderBusy         another live process owns the run folder
│   └── RunMismatch           the folder holds a run with other settings
├── AskFailed                 one ask ended without a usable reply
├── EncoderFailed             texts of a debate could not be embedded
├── CaseUnfit                 a case is nothing that its protocol can debate
├── QuorumFailed              a debate has too few valid replies to go on
├── ReplayDiverged            a debate that is replayed asks what its record does not hold
├── PathReused                a protocol asked the same path twice (a bug in the protocol)
├── RecordError               the record cannot be read or written
└── ActorGone                 an actor of the run did not come back, or died again and again

All constructor arguments are positional and passed to `super().__init__`, so each survives pickling.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class MootError(Exception):
    """Base of all exceptions that moot raises deliberately."""


class UserError(MootError):
    """An error that the user can fix; printed as one line, exit code 2."""


class ConfigError(UserError):
    """A setting is unknown, malformed or contradicts another."""


class TaskFileError(UserError):
    """A row of a task's file does not match the format.

    Args:
        file: the path as the user wrote it.
        line: 1-based line on which the row starts; 0 when the whole file is meant.
        field: the column or key.
        expected: expected content.
    """

    def __init__(self, file: str, line: int, field: str, expected: str) -> None:
        super().__init__(file, line, field, expected)
        self.file, self.line, self.field, self.expected = file, line, field, expected

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.line else self.file
        field = f" field `{self.field}`:" if self.field else ""
        return f"{where}:{field} {self.expected}"


class MissingKey(UserError):
    """The environment variable for an API key is not set."""


class ModelUnavailable(UserError):
    """A model's server cannot be reached, or it refuses the key or the model."""


class CapabilityMissing(UserError):
    """The model lacks a capability that the protocol needs; the message names the alternatives."""


class RunFolderBusy(UserError):
    """Another live process owns the run folder."""


class RunMismatch(UserError):
    """The run folder contains a run whose settings differ in a way that resume does not allow."""


class AskFailed(MootError):
    """One ask ended without a usable reply.

    Args:
        path: the ask's path in its debate.
        kind: `timeout`, `refused`, `unparsable`, `connection`, `server`, `rate_limited`, `request`,
            `context_length`, `content_filter`, `unsent` (nothing could be sent), or `bug` (an error in moot or in a
            reply model). An ask of kind `replay_diverged` raises `ReplayDiverged` instead.
        message: what happened, without any secret.
    """

    def __init__(self, path: str, kind: str, message: str) -> None:
        super().__init__(path, kind, message)
        self.path, self.kind, self.message = path, kind, message

    def __str__(self) -> str:
        return f"{self.path}: {self.kind}: {self.message}"


class EncoderFailed(MootError):
    """Texts of a debate could not be embedded: the case fails, not the run.

    Args:
        encoder: its name.
        kind: one of `AskFailed`'s kinds; `unparsable` for vectors that do not fit together.
        message: what happened, without any secret.
    """

    def __init__(self, encoder: str, kind: str, message: str) -> None:
        super().__init__(encoder, kind, message)
        self.encoder, self.kind, self.message = encoder, kind, message

    def __str__(self) -> str:
        return f"encoder {self.encoder}: {self.kind}: {self.message}"


class CaseUnfit(MootError):
    """A case that its protocol cannot debate, such as one without labels where they are needed."""


class QuorumFailed(MootError):
    """A debate has too few valid replies to continue."""


TRUNCATED = "truncated at max_tokens="
"""Start of the message of an ask whose reply ended at its token limit before it could be parsed."""

RAISE_MAX_TOKENS = "raise the role's max_tokens (`--max-reply-tokens`)"
"""Remedy for truncated replies."""

IGNORES_LIMIT = "the server does not keep to max_tokens: update it, or use another"
"""Remedy for replies that are longer than the requested tokens can be."""

UNCONSTRAINED = "not constrained to a schema: `--structured on`"
"""The remedy for an unreadable reply that was generated without a schema."""

UNSENT = "unsent"
"""Kind of failure of an ask that could not be sent, such as for a missing slot of its template. It is no call."""

REPLAY_DIVERGED = "replay_diverged"
"""Kind of failure of an ask that ends its debate with `ReplayDiverged`."""


class ReplayDiverged(MootError):
    """A replayed debate makes an ask that its record lacks: nothing after that would be the recorded run."""


class PathReused(MootError):
    """A protocol used the same path twice, which would make its journal ambiguous."""


class ActorGone(MootError):
    """An actor of the run did not come back, or died again and again: the run ends, and can be resumed."""


class RecordError(MootError):
    """The record cannot be read or written."""


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name most similar to a mistyped one, case-insensitive; None where none is similar.

    >>> nearest("SELEN", ["selene", "single-agent"])
    'selene'
    """
    by_fold = {each.casefold(): each for each in known}
    close = difflib.get_close_matches(name.casefold(), by_fold, n=1, cutoff=0.5)
    return by_fold[close[0]] if close else None


def unknown_name(kind: str, name: str, known: Iterable[str]) -> ConfigError:
    """Error for a name that is not in a closed set; it names the nearest known one.

    >>> str(unknown_name("protocol", "selen", ["selene", "single-agent"]))
    "unknown protocol 'selen': did you mean 'selene'? Known: selene, single-agent"
    """
    names = sorted(known)
    close = nearest(name, names)
    hint = f": did you mean {close!r}?" if close else "."
    return ConfigError(f"unknown {kind} {name!r}{hint} Known: {', '.join(names) or 'none'}")
