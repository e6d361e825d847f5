from stallscope.converters.model import Frame, Profile, Sample, ValueType
from stallscope.converters.transforms import merge_processes


def test_merged_processes_keep_their_names_and_times() -> None:
    stack = (Frame("main"), Frame("topk"))
    samples = [
        Sample(stack, (10 * pid,), (("pid", pid), ("process", "demo"), ("state", "other"), ("tid", pid + 1)))
        for pid in (1, 2)
    ]
    profile = Profile([ValueType("off-cpu", "nanoseconds")], samples, title="of 2 × demo", lost={"stacks": 3})
    merged = merge_processes(profile)
    assert {sample.labels for sample in merged.samples} == {(("process", "demo"), ("state", "other"))}
    assert merged.total("off-cpu") == 30
    assert (merged.title, merged.lost) == (profile.title, profile.lost)
    assert profile.samples[0].label("pid") == 1  # the profile that was given stays as it was
