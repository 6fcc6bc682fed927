"""How well answers fit the truth when every label counts alike, however rare it is."""

from collections import Counter
from collections.abc import Sequence


def macro_f1(truth: Sequence[str | None], predicted: Sequence[str | None], labels: Sequence[str]) -> float:
    """The mean over labels of `F1 = 2 hits / (2 hits + false alarms + misses)`.

    Args:
        truth: `(n,)`, each case's true label; None when unknown.
        predicted: `(n,)`, each case's answer. None (an abstention) and a text that is no label are wrong answers: a
            miss of the true label, and a false alarm of none.
        labels: the labels to take the mean over, each once.

    Returns:
        A number in [0, 1]. Cases without a known truth are left out. A label that is neither true nor answered anywhere
        has no F1 and is left out of the mean (as in scikit-learn with `zero_division=nan`, not 0); NaN when none is
        left.

    Raises:
        ValueError: if the lengths differ, a label is repeated, or a true label is not one of them.

    Source: van Rijsbergen, Information Retrieval, 1979; the mean as in Lewis, 1991.

    >>> round(macro_f1(["a", "a", "b"], ["a", None, "b"], ["a", "b", "c"]), 4)
    0.8333
    """
    if len(truth) != len(predicted):
        raise ValueError(f"{len(truth)} true labels but {len(predicted)} answers")
    if len(set(labels)) != len(labels):
        raise ValueError("a label is given twice")
    pairs = [(true, answer) for true, answer in zip(truth, predicted, strict=True) if true is not None]
    if strange := {true for true, _ in pairs} - set(labels):
        raise ValueError(f"the true label {min(strange)!r} is none of the labels")
    occurring = Counter(true for true, _ in pairs)
    answered = Counter(answer for _, answer in pairs)
    hits = Counter(true for true, answer in pairs if true == answer)
    scores = [
        2 * hits[label] / (occurring[label] + answered[label]) for label in labels if occurring[label] + answered[label]
    ]
    return sum(scores) / len(scores) if scores else float("nan")
