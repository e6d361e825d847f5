from __future__ import annotations

import importlib
import pkgutil

import pytest
from stallscope.converters import rules
from stallscope.converters.facts.facts import Facts
from stallscope.converters.rules import ranking
from stallscope.converters.rules.ranking import judge
from stallscope.converters.rules.registry import RULES
from stallscope.converters.rules.verdict import KINDS, Verdict
from summary_profiles import facts_of, model_case
from verdict_profiles import MINIMAL


def is_told(rule: str) -> bool:
    """Whether what a rule finds in its minimal profile comes first, is told with it, or is among what did not move."""
    judgement = judge(facts_of(MINIMAL[rule]()))
    return rule in {
        each.rule for each in (judgement.first, *judgement.blamed, *judgement.still, *judgement.steps) if each
    }


NOT_REGISTERED = {
    "longest": "asked if the others find nothing",
}
"""Rules that `RULES` does not have, and why."""


def test_each_module_with_a_rule_is_registered() -> None:
    names = [module.name for module in pkgutil.iter_modules(rules.__path__)]
    modules = (importlib.import_module(f"{rules.__name__}.{name}") for name in names)
    found = {module.RULE for module in modules if hasattr(module, "RULE")}
    assert found - RULES.keys() == NOT_REGISTERED.keys()


def test_each_rule_has_its_profile() -> None:
    assert set(MINIMAL) == set(RULES)


@pytest.mark.parametrize("rule", MINIMAL)
def test_without_a_rule_something_else_is_told(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_told(rule)
    monkeypatch.setattr(ranking, "RULES", {name: find for name, find in RULES.items() if name != rule})
    assert not is_told(rule)


@pytest.mark.parametrize("rule", RULES)
def test_verdicts_have_the_id_of_their_rule_and_a_known_kind(rule: str) -> None:
    found = RULES[rule](facts_of(MINIMAL[rule]()))
    assert {verdict.rule for verdict in found} == {rule}
    assert {verdict.kind for verdict in found} <= KINDS.keys()
    assert all(0 <= verdict.confidence <= 1 for verdict in found)


def test_one_entry_adds_a_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    def find(facts: Facts) -> list[Verdict]:
        return [Verdict("toy", "held", facts.active_wall * 2, 1, facts.at_work)]

    monkeypatch.setattr(ranking, "RULES", {**RULES, "toy": find})
    judgement = judge(facts_of(model_case()))
    assert judgement.first
    assert (judgement.first.rule, judgement.first.pids) == ("toy", set(range(4711, 4719)))
    assert judgement.second and judgement.second.rule == "held-up"
