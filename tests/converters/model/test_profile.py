import pytest
from stallscope.converters.model import Frame, Profile, Sample, ValueType

OFF_CPU = ValueType("off-cpu", "nanoseconds")
COUNT = ValueType("count", "count")


def test_total_adds_the_column_of_that_name() -> None:
    profile = Profile([OFF_CPU, COUNT], [Sample((), (100, 1)), Sample((Frame("f"),), (20, 3))])
    assert profile.index("count") == 1
    assert profile.total("off-cpu") == 120
    assert profile.total("count") == 4
    with pytest.raises(KeyError, match="max"):
        profile.total("max")


def test_profiles_do_not_share_their_lists() -> None:
    first, second = Profile([OFF_CPU]), Profile([OFF_CPU])
    first.samples.append(Sample((), (1,)))
    first.lost["lost events"] = 1
    assert (second.samples, second.lost) == ([], {})
