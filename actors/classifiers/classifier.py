"""Loaded classifier: a logistic head over vectors of the run's encoder, or of its own body."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy

from moot.actors.classifiers.card import BODY, ClassifierCard, Head, read_card
from moot.actors.encoders.batching import BatchedEncoder
from moot.actors.encoders.interface import Encoder
from moot.actors.encoders.sentence_model import SentenceModel, check_modules, folder_digest, is_hidden
from moot.actors.models.retry import RetryPolicy
from moot.actors.record.referenced_files import CLASSIFIER_CARD
from moot.metrics.logistic_regression import bounded
from moot.protocols.claims import text_hash
from moot.protocols.errors import ConfigError, EncoderFailed

_DATA = frozenset({".json", ".safetensors", ".txt"})
_MOST_FILES, _MOST_BYTES = 64, 2**33


class LoadedClassifier:
    """Classifier loaded for a run; see `moot.actors.debate.context.Classifier`.

    Args:
        card: the folder's card.
        encoder: of the kind `setfit`; None for `logistic`.
    """

    def __init__(self, card: ClassifierCard, encoder: Encoder | None) -> None:
        self.card = card
        self._encoder = encoder
        self._weights = np.array(card.head.coefficients)
        self._claims = frozenset(card.trained_on)

    @property
    def encoder(self) -> Encoder | None:
        """See `context.Classifier.encoder`."""
        return self._encoder

    def p_hallucinated(self, vector: npt.NDArray[np.float32]) -> float:
        """See `context.Classifier.p_hallucinated`.

        Raises:
            EncoderFailed: the vector's size differs from that of training.
        """
        if vector.shape != self._weights.shape:
            message = f"the classifier expects vectors of {len(self._weights)} numbers, not {vector.shape}"
            raise EncoderFailed(self.card.encoder, "unparsable", message)
        return float(probabilities(self.card.head, vector[np.newaxis])[0])

    def trained_on(self, claim: str) -> bool:
        """See `context.Classifier.trained_on`."""
        return text_hash(claim) in self._claims


def probabilities(head: Head, vectors: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]:
    """Predicted probabilities of "hallucinated" for unit vectors `(n, d)`, within the head's bounds.

    >>> head = Head(intercept=0.0, coefficients=(9.0, 0.0), least_probability=0.1)
    >>> probabilities(head, np.array([[1.0, 0.0], [0.0, 1.0]])).tolist()
    [0.9, 0.5]
    """
    odds = head.intercept + vectors.astype(np.float64) @ np.array(head.coefficients)
    return bounded(scipy.special.expit(odds), head.least_probability)


class ResolvedClassifier(NamedTuple):
    """Resolved classifier: its absolute folder, and its card."""

    folder: Path
    card: ClassifierCard


def find_classifier(name: str | Path, encoder: str) -> ResolvedClassifier:
    """Finds and validates the classifier in a folder.

    Args:
        name: the folder, as the user wrote it.
        encoder: identity of the run's encoder.

    Raises:
        ConfigError: one line: the folder has no classifier, the classifier or its body was changed, or it reads vectors
            of another encoder than the run's.
    """
    folder = Path(name).expanduser().absolute()
    card = read_card(folder)
    foreign = {path.name for path in folder.iterdir()} - {CLASSIFIER_CARD, *((BODY,) if card.body is not None else ())}
    if foreign:
        raise ConfigError(f"{folder / min(foreign)}: a classifier's folder holds nothing else; remove it")
    if card.body is not None:
        check_body(folder / BODY, card.body.digest)
    elif card.encoder != encoder:
        raise ConfigError(
            f"--classifier {name}: it reads vectors of the encoder {card.encoder}, and the run has {encoder}: "
            "give that one with --encoder, or train a classifier on this one"
        )
    return ResolvedClassifier(folder, card)


def load_classifier(folder: Path, digest: str, encoder: str, retry: RetryPolicy) -> LoadedClassifier:
    """Loads the classifier of a run.

    Args:
        folder: of the classifier.
        digest: of the card that the run began with.
        encoder: identity of the run's encoder.
        retry: policy for failed batches of texts.

    Raises:
        ConfigError: see `find_classifier`; or the folder now has another classifier.
    """
    card = find_classifier(folder, encoder).card
    if card.digest != digest:
        raise ConfigError(f"{folder}: holds another classifier ({card.digest}) than the run began with ({digest})")
    own = None if card.body is None else body_encoder(folder / BODY, card.body.digest, retry)
    return LoadedClassifier(card, own)


def check_body(folder: Path, digest: str) -> None:
    """Validates a body: refuses one that is not the trained one, or that has anything but weights and settings.

    A sentence-transformers folder may name Python modules of its own, which loading would run, and its weights may be a
    pickle, which can contain any code: both are refused. So are files that the digest does not cover, and modules
    outside of the folder.

    Raises:
        ConfigError: one line that names what is wrong.
    """
    try:
        files = [path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir()]
        strange = sorted(path for path in files if path.is_symlink() or path.suffix not in _DATA)
        if strange:
            raise ConfigError(f"{strange[0]}: a classifier's body holds safetensors and JSON only; train it again")
        hidden = sorted(path for path in folder.rglob("*") if is_hidden(path.relative_to(folder)))
        if hidden:
            raise ConfigError(f"{hidden[0]}: a classifier's body has no hidden files or folders; train it again")
        if len(files) > _MOST_FILES or sum(path.stat().st_size for path in files) > _MOST_BYTES:
            raise ConfigError(f"{folder}: more or larger files than a classifier's body may have")
        check_modules(folder)
    except OSError as error:
        raise ConfigError(f"{folder}: {(error.strerror or 'cannot be read').lower()}") from None
    found = folder_digest(folder)
    if found != digest:
        raise ConfigError(f"{folder}: holds another model ({found}) than was trained ({digest}); train it again")


def body_name(digest: str) -> str:
    """Encoder name of a body's vectors in the record, independent of the folder's place.

    >>> body_name("0123456789ab")
    'setfit@0123456789ab'
    """
    return f"setfit@{digest}"


def body_encoder(folder: Path, digest: str, retry: RetryPolicy) -> Encoder:
    """Creates the body's encoder; its weights are loaded on first use.

    Args:
        folder: of the body.
        digest: of its files.
        retry: policy for failed batches.
    """
    return BatchedEncoder(SentenceModel(body_name(digest), str(folder.absolute()), digest), retry)
