from __future__ import annotations

from stallscope.converters.model.asked_values import AskedValues
from stallscope.converters.summary.asked_values import to_json


def test_as_data() -> None:
    hostile = AskedValues("hist", "n", "f\udcff", "lib", 3, -6, [(-3, -2, 3)])
    (found,) = to_json([hostile])
    assert found == {
        "ask": "hist",
        "expression": "n",
        "name": r"f\xff",
        "library": "lib",
        "count": 3,
        "sum": -6,
        "mean": -2.0,
        "buckets": [{"from": -3, "to": -2, "count": 3}],
        "values": [],
        "others": 0,
    }
    (found,) = to_json([AskedValues("count-by", "s", "f", "lib", 7, 0, values=[("a\udcff", 4)], others=3)])
    assert (found["sum"], found["mean"], found["others"]) == (None, None, 3)
    assert found["values"] == [{"value": r"a\xff", "count": 4}]
    assert to_json([AskedValues("sum", "n", "f", "lib", 0, 0)])[0]["mean"] is None
