"""Conversion of a present run.yaml to one from before model profiles: without the keys that were added since."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

_OF_SELENE = """
agents gate.when gate.tau_d gate.tau_m gate.tau_p gate.tau_d_encoder gate.require_unanimity gate.intrinsic
gate.resamples gate.embed_rationale debate.max_rounds debate.epsilon judging.method judging.k judging.repeats
judging.variants judging.weighting judging.lam judging.candidates judging.show_rationale vote.samples audit_skipped
audit_judging both_branches
"""
SETTINGS = {
    "always-debate": _OF_SELENE,
    "ceda": """
        max_turns evidence.passages evidence.shown evidence.least_similarity vision.prompt role instruction
    """,
    "constructor-auditor": "judge.when judge.passes logprobs",
    "evince": """
        agents top_k history max_rounds schedule kappa.start kappa.floor kappa.far kappa.uncertain gate
        quality.threshold quality.margin crit.max_depth crit.max_calls crit.max_reasons crit.max_rivals crit.weak_points
        crit_turns stop epsilon tau printed_epsilon ground kl_epsilon retrieve retrieve_from follow_ups unsure_below
    """,
    "judge-panel": "rubric passes",
    "majority-vote": _OF_SELENE,
    "selene": _OF_SELENE,
    "single-agent": _OF_SELENE,
    "socrasynth": """
        topics.count topics.proposed schedule max_rounds patience min_delta temperature max_tokens crit.max_depth
        crit.max_calls crit.max_reasons crit.max_rivals crit.weak_points crit_topics versus_qa
    """,
}
"""Settings in the oldest records, by protocol, except `kappa.ratio` of EVINCE, which is no longer one."""

ROLE = "model persona temperature top_p max_tokens top_logprobs api_key_env base_url timeout_s structured early_stop"
"""Keys of a role in the oldest records."""


def oldest(body: Mapping[str, Any]) -> dict[str, Any]:
    """Content of the run.yaml of one of `SETTINGS` without the keys that were added since; values are those of
    today."""
    bindings = {
        family: [{key: member[key] for key in ROLE.split()} for member in members]
        for family, members in body["bindings"].items()
    }
    settings = _only(body["settings"], SETTINGS[body["protocol"]].split())
    return {
        **{key: value for key, value in body.items() if key != "sealed"},
        "settings": settings,
        "bindings": bindings,
    }


def _only(settings: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name in names:
        *groups, last = name.split(".")
        source, target = settings, made
        for group in groups:
            source, target = source[group], target.setdefault(group, {})
        target[last] = source[last]
    return made
