import pytest
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.model import Profile, Sample, ValueType
from stallscope.converters.writers.base.options import WriteOptions, missing, value_index

MAX = ValueType("max", "nanoseconds", "max")
OFF_CPU = ValueType("off-cpu", "nanoseconds")
COUNT = ValueType("count", "count")


def test_the_default_is_the_first_sum() -> None:
    assert value_index(Profile([MAX, OFF_CPU, COUNT]), WriteOptions()) == 1


def test_the_profile_may_name_another_default() -> None:
    assert value_index(Profile([OFF_CPU, COUNT], default_value="count"), WriteOptions()) == 1
    assert value_index(Profile([OFF_CPU, COUNT], default_value="count"), WriteOptions(value="off-cpu")) == 0
    assert value_index(Profile([OFF_CPU, MAX], default_value="max"), WriteOptions()) == 0
    assert value_index(Profile([OFF_CPU], default_value="gone"), WriteOptions()) == 0


def test_by_name() -> None:
    assert value_index(Profile([MAX, OFF_CPU, COUNT]), WriteOptions(value="count")) == 2


def test_a_maximum_of_the_same_name_is_not_taken_for_the_sum() -> None:
    profile = Profile([ValueType("off-cpu", "nanoseconds", "max"), OFF_CPU])
    assert value_index(profile, WriteOptions(value="off-cpu")) == 1


@pytest.mark.parametrize("name", ["max", "cpu"])
def test_what_cannot_be_added_up_is_refused(name: str) -> None:
    with pytest.raises(StallscopeError) as caught:
        value_index(Profile([MAX, OFF_CPU, COUNT]), WriteOptions(value=name))
    assert caught.value.exit_code == 2
    assert name in caught.value.cause
    assert "off-cpu, count" in caught.value.remedy


def test_a_profile_without_sums() -> None:
    with pytest.raises(StallscopeError):
        value_index(Profile([MAX]), WriteOptions())


def test_samples_that_nothing_can_draw_are_missing() -> None:
    profile = Profile([OFF_CPU, COUNT], [Sample((), (-5, 1)), Sample((), (0, 2)), Sample((), (3, -1))], lost={"a": 1})
    assert missing(profile, WriteOptions()) == {"a": 1, "samples with a negative value": 1}
    profile.samples.pop(0)
    assert missing(profile, WriteOptions()) == {"a": 1}
    assert missing(profile, WriteOptions(value="count")) == {"a": 1, "samples with a negative value": 1}
