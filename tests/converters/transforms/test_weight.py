import pytest
from stallscope.converters.model import Profile, ValueType
from stallscope.converters.transforms.weight import value_name

OURS = [
    ValueType("longest", "nanoseconds", "max"),
    ValueType("off-cpu", "nanoseconds"),
    ValueType("switches", "count"),
    ValueType("bytes", "bytes"),
]


@pytest.mark.parametrize(
    ("wanted", "name"),
    [("time", "off-cpu"), ("count", "switches"), ("bytes", "bytes"), ("off-cpu", "off-cpu"), ("x", "x"), ("", "")],
)
def test_time_and_count_are_found_by_their_units(wanted: str, name: str) -> None:
    assert value_name(Profile(OURS), wanted) == name


def test_a_value_of_that_name_goes_first() -> None:
    kinds = [ValueType("off-cpu", "nanoseconds"), ValueType("time", "microseconds"), ValueType("count", "bytes")]
    assert value_name(Profile(kinds), "time") == "time"
    assert value_name(Profile(kinds), "count") == "count"


def test_none_of_that_unit() -> None:
    assert value_name(Profile([ValueType("bytes", "bytes")]), "time") == "time"
