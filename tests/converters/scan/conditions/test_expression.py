from __future__ import annotations

import pytest
from stallscope.converters.scan.conditions.expression import Quantity


@pytest.mark.parametrize(
    ("quantity", "text"),
    [
        (Quantity("lock"), "lock"),
        (Quantity("lock", "main"), "lock(main)"),
        (Quantity("lock", "io-*", is_pattern=True), "lock('io-*')"),
        (Quantity("lock", "process", is_pattern=True), "lock('process')"),
    ],
)
def test_a_quantity_is_shown_as_it_is_written(quantity: Quantity, text: str) -> None:
    assert str(quantity) == text
