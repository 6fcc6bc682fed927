"""Pairs of sentences from two sources that contradict each other, and pairs that do not.

The difference in wording increases from `PLAIN` to `FREE`, as between real sources.
"""

from __future__ import annotations

PLAIN = (
    ("The lighthouse at Skarnes was lit in 1871.", "The lighthouse at Skarnes was first lit in 1878."),
    ("The tunnel through the Harn is 4,200 metres long.", "The Harn tunnel is 3,900 metres long."),
    ("The reading room is open on Sundays.", "The reading room is not open on Sundays."),
    ("Water levels in the reservoir rose in May.", "In May the water levels in the reservoir fell."),
)
"""Equal words except for the figure, the negation or the antonym."""

ATTRIBUTED = (
    (
        "A plaque at the chapel says that it was built in 1711.",
        "According to the register the chapel was built in 1714.",
    ),
    (
        "The mayor said that the bridge cost 3 million euros.",
        "The auditors reported that the bridge cost 5 million euros.",
    ),
    ("The firm stated that the plant employs 240 people.", "The union claims that the plant employs 180 people."),
    ("The guide says that the cave is open in winter.", "The caretaker wrote that the cave is not open in winter."),
)
"""With attributions to a source or a speaker."""

INFLECTED = (
    ("The mill on the Aar was built in 1887.", "Builders began building the Aar mill in 1889."),
    ("The two samples had 21 and 23 milligrams of lead.", "Both samples had 61 milligrams of lead."),
    ("The choir sang in Oslo in 1998.", "The choir did not sing in Oslo in 1998."),
    ("He wrote the Harbour Suite in 1931.", "The Harbour Suite was written by him in 1935."),
)
"""Other inflections of the same words."""

FREE = (
    ("Nobody will lose their job in Dornau.", "The Dornau works will close, and 160 people will be dismissed."),
    ("The organisers spoke of 20,000 people at the march.", "The police counted 8,000."),
    ("The well had 62 milligrams of nitrate per litre.", "Two new samples of its water had 21 and 23 milligrams."),
    ("The painting is a copy.", "Experts hold the picture to be by the master's own hand."),
)
"""Other words: only the meaning shows the contradiction."""

AGREEING = (
    ("The lighthouse at Skarnes was lit in 1871.", "The lighthouse at Skarnes is 31 metres high."),
    ("The tunnel is 4,200 metres long.", "The tunnel is about 4,000 metres long."),
    ("The reading room is open on Sundays.", "The archive is not open on Sundays."),
    ("A plaque at the chapel says that it was built in 1711.", "The register has the chapel built in 1711."),
    ("The mayor said that the bridge cost 3 million euros.", "The auditors reported that the tunnel cost 5 million."),
    ("The firm stated that the plant employs 240 people.", "The union claims that the plant dismissed 18 people."),
    ("The mill on the Aar was built in 1887.", "The mill on the Rhone was built in 1889."),
    ("The two samples had 21 and 23 milligrams of lead.", "Both samples had between 20 and 25 milligrams of lead."),
    ("The choir sang in Oslo in 1998.", "The choir sang in Bergen in 2001."),
    ("He wrote the Harbour Suite in 1931.", "He wrote the Mountain Suite in 1935."),
    ("The works in Dornau have 160 people.", "The Dornau works opened in June."),
    ("The police counted 8,000 people at the march.", "Aerial photographs gave between 7,500 and 8,500 people."),
)
"""Pairs that can both be true."""
