"""Words that contradict each other when said of the same thing; a short list, which misses more than it finds."""

from __future__ import annotations

_PAIRS = """
above/below accept/reject agree/disagree alive/dead allow/ban allow/forbid approve/reject begin/end
big/small black/white born/died boy/girl buy/sell cold/hot cool/warm dark/light dangerous/safe dangerous/harmless
decline/grow decrease/increase different/identical different/same down/up early/late earlier/later earliest/latest
east/west eastern/western empty/full enemy/friend equal/unequal export/import fail/succeed failure/success fall/rise
false/true fell/rose few/many fewer/more first/last fewest/most forward/backward gain/lose grew/shrank grow/shrink
guilty/innocent harmful/harmless heavy/light high/low higher/lower highest/lowest husband/wife illegal/legal
impossible/possible include/exclude inside/outside large/small larger/smaller largest/smallest least/most left/right
less/more long/short longer/shorter longest/shortest lose/win lost/won loss/profit man/woman male/female
maximum/minimum men/women natural/artificial new/old north/south northern/southern open/close older/younger
oldest/youngest present/absent private/public poor/rich safe/unsafe slow/fast slower/faster start/finish start/stop
strong/weak stronger/weaker tall/short unable/able unknown/known young/old
"""


def antonym_pairs() -> tuple[tuple[str, str], ...]:
    """The pairs, as words.

    >>> ("left", "right") in antonym_pairs()
    True
    """
    pairs = (pair.partition("/") for pair in _PAIRS.split())
    return tuple((one, other) for one, _, other in pairs)
