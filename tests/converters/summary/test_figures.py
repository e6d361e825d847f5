"""Output of --json. The golden files in tests/data/summary are what programs rely on.

After a deliberate change `STALLSCOPE_BLESS=1 pytest tests/converters/test_summary.py` writes them anew: read the
diff, and raise SCHEMA_VERSION when a key goes or changes its meaning.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from stallscope.converters.model import Profile
from stallscope.converters.summary.summarize import summarize
from summary_profiles import SECOND, Tracee, empty, hostile, idle_pool, model_case, two_spinners_on_one_core

GOLDEN = Path(__file__).parents[2] / "data" / "summary"
CASES: dict[str, Callable[[], Profile]] = {
    "empty": empty,
    "hostile": hostile,
    "idle_pool": idle_pool,
    "model_case": model_case,
    "two_spinners": two_spinners_on_one_core,
}


@pytest.mark.parametrize("case", CASES)
def test_json_is_stable(case: str) -> None:
    plain = summarize(CASES[case]()).to_json()
    del plain["thresholds"]  # docs/verdicts.md has them
    text = json.dumps(plain, indent=1) + "\n"
    golden = GOLDEN / f"{case}.json"
    if os.environ.get("STALLSCOPE_BLESS") == "1":
        golden.write_text(text)
    assert golden.is_file(), f"{golden} is missing"
    assert text == golden.read_text()


def test_every_golden_file_is_a_case() -> None:
    assert {path.stem for path in GOLDEN.glob("*.json")} == set(CASES)


def test_names_come_back_as_they_are() -> None:
    plain = json.loads(json.dumps(summarize(hostile()).to_json(), ensure_ascii=False))
    assert plain["processes"][0]["name"] == '<script>alert(1)</script>;x\n\x1b]0;owned\x07[red]"\\'
    assert plain["lost"] == {"lost\x07 events": 1}
    assert plain["comments"] == ["first\nsecond\u202e"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [("caf\udce9", "caf\\xe9"), ("\ud800", "\\ud800"), ("é→", "é→"), ("\\x41", "\\x41")],
)
def test_lone_surrogates_become_text(name: str, expected: str) -> None:
    profile = empty()
    Tracee(profile, 1, name, 1, name).run(SECOND)
    plain = summarize(profile).to_json()
    assert plain["processes"][0]["name"] == expected
    json.dumps(plain, ensure_ascii=False).encode()


def test_shares_are_of_all_threads_and_of_those_that_wait() -> None:
    topk = summarize(model_case()).to_json()["waits"][1]
    assert (topk["share"], topk["threads_share"]) == (0.421, 0.842)


def test_unknown_shares_are_null() -> None:
    profile = model_case()
    profile.threads.clear()
    for wait in summarize(profile).to_json()["waits"]:
        assert wait["share"] is None
        assert wait["threads_share"] is None
