"""Irregular English verbs by their other forms, for comparing words; forms that are another word, too, are left out."""

from __future__ import annotations

from collections.abc import Mapping

_VERBS = """
begin began begun/break broke broken/bring brought/build built/buy bought/catch caught/choose chose chosen/come came/
draw drew drawn/drink drank drunk/drive drove driven/eat ate eaten/fall fell fallen/fly flew flown/freeze froze frozen/
give gave given/go went gone/grow grew grown/hold held/keep kept/know knew known/lead led/lose lost/make made/meet met/
pay paid/ride rode ridden/rise rose risen/run ran/sell sold/send sent/sing sang sung/sink sank sunk/sleep slept/
speak spoke spoken/spend spent/steal stole stolen/swim swam swum/take took taken/teach taught/throw threw thrown/
win won/write wrote written
"""

IRREGULAR: Mapping[str, str] = {
    form: verb for verb, *forms in (verbs.split() for verbs in _VERBS.split("/")) for form in forms
}
"""By form the infinitive."""
