"""A classifier's folder: written as a whole or not at all, and never over another one."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from moot.actors.classifiers.body import check_body
from moot.actors.classifiers.card import BODY, CARD, Card, read_card
from moot.actors.record.folder import write_whole
from moot.protocols.errors import ConfigError, RecordError


def classifier_there(out: str | Path, training_digest: str) -> Card | None:
    """The card of the classifier that lies in `out`, if the same training has made it; None when nothing is there.

    Raises:
        ConfigError: something else is there, or it was changed.
    """
    folder = absolute(out)
    try:
        if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
            return None
    except OSError as error:
        raise ConfigError(f"--out {out}: {(error.strerror or 'cannot be read').lower()}") from None
    if not (folder / CARD).is_file():
        raise ConfigError(f"--out {out}: something else is there; name another folder")
    card = read_card(folder)
    if card.training.digest != training_digest:
        raise ConfigError(
            f"--out {out}: holds a classifier that was trained on other summaries or with other settings; name "
            "another folder"
        )
    if card.body is not None:
        check_body(folder / BODY, card.body.digest)
    return card


def write_classifier(out: str | Path, make: Callable[[Path], Card]) -> Card:
    """Write a classifier's folder.

    Args:
        out: where; empty or absent.
        make: puts what belongs to it besides its card into the folder that it is given, and returns the card.

    Raises:
        ConfigError: it cannot be written; nothing is left of it then.
    """
    folder = absolute(out)
    draft = folder.with_name(f".{folder.name}.{os.getpid()}.tmp")
    try:
        draft.mkdir(parents=True)
        card = make(draft)
        write_whole(draft / CARD, card.to_json())
        draft.rename(folder)
    except OSError as error:
        raise ConfigError(f"--out {out}: {(error.strerror or 'cannot be written').lower()}") from None
    except RecordError as error:
        raise ConfigError(f"--out {out}: {error}") from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return card


def absolute(out: str | Path) -> Path:
    """The folder that a name means."""
    return Path(out).expanduser().absolute()
