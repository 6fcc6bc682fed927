"""Confidence features: eight statistics of a token signal in nineteen windows of each reply."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal, get_args

import numpy as np
import numpy.typing as npt

from moot.metrics.distribution import Floats
from moot.metrics.ragged import RaggedArray

Statistic = Literal["mean", "median", "min", "max", "range", "variance", "std", "slope"]
"""Name of a window statistic; see `window_features`."""

STATISTICS: tuple[Statistic, ...] = get_args(Statistic)


def window_statistic(logprobs: npt.ArrayLike, statistic: Statistic) -> Floats:
    """Summary statistic of each window of log-probabilities.

    Args:
        logprobs: `(..., k)`, natural logarithms; windows of k tokens, k at least 1.
        statistic: `mean`, `median`, `min`, `max`; `range` = max - min; `variance` and `std` of the population; `slope`
            of the log-probability on the token index.

    Returns:
        `(...)`; NaN if a value in the window is not finite, and for the slope of one token.

    Raises:
        ValueError: for an empty window.

    Source: "Early-Token Confidence", its 8 statistics.

    >>> float(window_statistic([-1.0, -2.0, -3.0], "slope"))
    -1.0
    """
    windows = np.asarray(logprobs, np.float64)
    if not windows.ndim or not windows.shape[-1]:
        raise ValueError("a window must contain at least one token")
    size = windows.shape[-1]
    known = np.asarray(np.isfinite(windows.reshape(-1, size)).all(axis=-1))
    result = np.full(len(known), np.nan)
    if known.any():
        starts = np.flatnonzero(known) * size
        statistics = _statistics(windows.ravel(), starts, np.full(len(starts), size))
        result[known] = statistics[:, STATISTICS.index(statistic)]
    return result.reshape(windows.shape[:-1])


Integers = npt.NDArray[np.int64]

Signal = Literal["logprob", "entropy"]
"""Token signal: the log-probability of the token, or the entropy of the distribution it was sampled from."""

Origin = Literal["token 0", "content"]
"""Origin of the windows: the first token, or the first after a section label or other fixed opening."""

Window = Literal[
    "first-3",
    "first-5",
    "first-10",
    "first-20",
    "first-30",
    "first-50",
    "last-3",
    "last-5",
    "last-10",
    "last-20",
    "last-30",
    "last-50",
    "first-10%",
    "first-25%",
    "first-50%",
    "last-10%",
    "last-25%",
    "last-50%",
    "full",
]
"""Name of a window: a number of tokens, a percentage of the tokens (rounded down), or all tokens."""

WINDOWS: Final[tuple[Window, ...]] = get_args(Window)

LEAST_LOGPROB: Final = -9000.0
"""Values up to this are unknown: vendors send -9999 for unknown log-probabilities."""

_CELLS: Final = 1 << 16  # of a padded matrix: 0.5 MB, so that the few matrices of a block fit into the cache
_WORDS: Final[dict[Statistic, str]] = {"variance": "variance", "std": "std. dev."}


@dataclass(frozen=True, slots=True)
class Feature:
    """Confidence feature: one statistic of one window of a reply.

    Attributes:
        signal: token signal.
        origin: token from which the window is counted.
        window: window of tokens.
        statistic: statistic of their values.

    >>> Feature("logprob", "content", "first-3", "range").name
    'logprob.content.first-3.range'
    >>> Feature("logprob", "token 0", "first-30", "slope").words
    'Slope over first 30 tokens'
    """

    signal: Signal
    origin: Origin
    window: Window
    statistic: Statistic

    @property
    def name(self) -> str:
        """Column name, such as `logprob.first-3.range`."""
        origin = () if self.origin == "token 0" else (self.origin,)
        return ".".join((self.signal, *origin, self.window, self.statistic))

    @property
    def words(self) -> str:
        """Display name, as in the papers: `Range of first 3 tokens`, `Final-half median`."""
        statistic = _WORDS.get(self.statistic, self.statistic)
        whole = {"full": "Full-response", "first-50%": "First-half", "last-50%": "Final-half"}.get(self.window)
        if whole:
            words = f"{whole} {statistic}"
        else:
            end, size = self.window.split("-")
            tokens = f"{size[:-1]} % of tokens" if size.endswith("%") else f"{size} tokens"
            words = f"{statistic.capitalize()} {'over' if self.statistic == 'slope' else 'of'} {end} {tokens}"
        qualifiers = [*["entropy"][: self.signal == "entropy"], *["from content"][: self.origin == "content"]]
        return f"{words} ({', '.join(qualifiers)})" if qualifiers else words

    @property
    def orientation(self) -> int:
        """Direction: +1 if higher values indicate more confidence, -1 if less, 0 for a slope (neither)."""
        if self.statistic == "slope":
            return 0
        if self.statistic in ("range", "variance", "std"):
            return -1
        return 1 if self.signal == "logprob" else -1


def features(signal: Signal, origin: Origin = "token 0") -> tuple[Feature, ...]:
    """All 152 features of a signal, in the column order of `window_features`.

    >>> [feature.name for feature in features("entropy")[:2]], len(features("entropy"))
    (['entropy.first-3.mean', 'entropy.first-3.median'], 152)
    """
    return tuple(Feature(signal, origin, window, statistic) for window in WINDOWS for statistic in STATISTICS)


def window_features(values: RaggedArray) -> Floats:
    """Feature matrix: every statistic of every window of each reply.

    For a reply of T values, `first-k` and `last-k` contain k values, `first-p%` and `last-p%` floor(p T / 100), and
    `full` all T. For the values v_1 ... v_w of a window: mean; median; min; max; range = max - min; variance = sum (v_i
    - mean)^2 / w; std = its square root; slope = sum (i - (w + 1) / 2) (v_i - mean) / (w (w^2 - 1) / 12), the
    least-squares slope per token. If all values are equal, range, variance, std and slope are exactly 0. The features
    of a reply do not depend, to the last bit, on the other replies.

    Args:
        values: log-probability (nats) or entropy of each token. For features with the origin `content`, pass the values
            from there on (`RaggedArray.from_starts`).

    Returns:
        `(R, 152)`, columns as in `features`, in the unit of the values (variance: squared; slope: per token). NaN for a
        window that is empty, longer than the reply, or has a value that is not finite or at most `LEAST_LOGPROB`, and
        for the slope of one token.

    Source: "Early-Token Confidence", section 3.3; "The Confident Liar", section 3.4.

    >>> result = window_features(RaggedArray.from_lists([[-1.0, -2.0, -3.0], [-1.0]]))
    >>> dict(zip([feature.name for feature in features("logprob")], result[0].tolist()))["logprob.first-3.slope"]
    -1.0
    >>> int(np.isfinite(result[1]).sum())  # one token: only the full window, and no slope
    7
    """
    raw = values.values
    unknown = ~np.isfinite(raw) | (raw <= LEAST_LOGPROB)
    unknown_before = np.concatenate([[0], np.cumsum(unknown)])
    known = np.where(unknown, 0.0, raw).astype(np.float64, copy=False)
    shortest_first = np.argsort(values.lengths)
    result = np.full((len(values), len(WINDOWS) * len(STATISTICS)), np.nan)
    for index, window in enumerate(WINDOWS):
        starts, sizes = _bounds(values, window)
        invalid = unknown_before[starts + sizes] > unknown_before[starts]
        usable = shortest_first[((sizes > 0) & ~invalid)[shortest_first]]
        columns = slice(index * len(STATISTICS), (index + 1) * len(STATISTICS))
        for rows in _blocks(usable, sizes):
            result[rows, columns] = _statistics(known, starts[rows], sizes[rows])
    return result


def _bounds(values: RaggedArray, window: Window) -> tuple[Integers, Integers]:
    """Start of each reply's window in the flat array, and its size; 0 if the reply has none."""
    lengths = values.lengths
    end, _, size = window.partition("-")
    if not size:
        sizes = lengths
    elif size.endswith("%"):
        sizes = lengths * int(size[:-1]) // 100
    else:
        sizes = np.where(lengths >= int(size), int(size), 0)
    return (values.offsets[1:] - sizes if end == "last" else values.offsets[:-1]), sizes


def _blocks(rows: Integers, sizes: Integers) -> Iterator[Integers]:
    """Blocks of rows, which are sorted by size; a padded matrix has at most `_CELLS` cells, or one row."""
    start = 0
    while start < len(rows):
        widths = sizes[rows[start : start + max(1, _CELLS // int(sizes[rows[start]]))]]
        cells = widths * np.arange(1, len(widths) + 1)
        count = max(1, int(np.searchsorted(cells, _CELLS, side="right")))
        yield rows[start : start + count]
        start += count


def _statistics(values: Floats, starts: Integers, sizes: Integers) -> Floats:
    """Statistics of the windows with these starts and sizes, `(rows, 8)`, in the order of `STATISTICS`.

    Windows are columns. Numpy sums several columns token by token but a single column pairwise, which may differ in the
    last bit. A single window is therefore computed twice, so that it does not depend on the batch.
    """
    if len(sizes) == 1:
        return _statistics(values, starts.repeat(2), sizes.repeat(2))[:1]
    positions, last = np.arange(sizes[-1])[:, np.newaxis], sizes - 1
    outside = positions >= sizes
    windows = values.take(starts + positions, mode="clip")
    windows[outside] = np.inf
    ordered = windows.T.copy()
    ordered.sort(axis=1)
    row = np.arange(len(sizes))
    least, greatest = ordered[:, 0], ordered[row, last]
    median = (ordered[row, last // 2] + ordered[row, sizes // 2]) / 2
    windows[outside] = 0.0
    mean = windows.sum(axis=0) / sizes
    centred = np.subtract(windows, mean, out=windows)
    centred[outside] = 0.0
    variance = (centred * centred).sum(axis=0) / sizes
    with np.errstate(invalid="ignore"):  # the slope of one token is 0 / 0
        slope = (centred * (positions - last / 2)).sum(axis=0) / (sizes * (sizes * sizes - 1.0) / 12)
    # Equal values get a spread of rounding errors, which would change ranks.
    varied = greatest > least
    variance, slope = np.where(varied, variance, 0.0), np.where(varied | (sizes == 1), slope, 0.0)
    mean = np.clip(mean, least, greatest)
    return np.stack([mean, median, least, greatest, greatest - least, variance, np.sqrt(variance), slope], axis=1)
