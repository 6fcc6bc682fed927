"""How often each observation is drawn when whole clusters are drawn with replacement."""

import numpy as np
import numpy.typing as npt


def cluster_weights(clusters: npt.ArrayLike, resamples: int, seed: int) -> npt.NDArray[np.int64]:
    """Multiplicities of the observations in each resample.

    Args:
        clusters: `(n,)`, the cluster of each observation.
        resamples: how many draws.
        seed: of the draws.

    Returns:
        `(resamples, n)`, equal within a cluster.
    """
    _, number = np.unique(np.asarray(clusters), return_inverse=True)
    count = int(number.max()) + 1 if len(number) else 0
    random = np.random.default_rng(seed)
    drawn = (
        random.multinomial(count, np.full(count, 1.0 / count), size=resamples) if count else np.zeros((resamples, 0))
    )
    return np.asarray(drawn[:, number], dtype=np.int64)
