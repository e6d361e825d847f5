from __future__ import annotations

from stallscope.converters.model import ranks
from stallscope.converters.model.origins import IDENTITIES, SIZES, VARIABLES


def test_each_variable_is_kept_once() -> None:
    assert len(set(VARIABLES)) == len(VARIABLES)
    assert not set(VARIABLES) & set(ranks.VARIABLES)
    assert {*SIZES, *(name for names in IDENTITIES for name in names)} <= set(VARIABLES)
