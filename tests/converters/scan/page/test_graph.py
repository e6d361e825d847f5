from __future__ import annotations

from scans import scanned_host, three_troubles
from stallscope.converters.model import Frame, Profile, Sample
from stallscope.converters.scan.page.graph import FOLDED, GROUP, graph_profile
from stallscope.converters.scan.page.groups import Groups, groups_of
from stallscope.converters.scan.report import report_of
from summary_profiles import SECOND


def made(profile: Profile, most: int = 100) -> tuple[Profile, str, Groups]:
    groups = groups_of(report_of(profile))
    return *graph_profile(profile, groups, most), groups


def test_columns_are_what_can_be_shown() -> None:
    profile = scanned_host()
    graph, told, _ = made(profile)
    assert not told
    assert [each.name for each in graph.value_types] == ["wall", "off-CPU", "on-CPU", "wakers", "calls"]
    totals = {each.name: graph.total(each.name) for each in graph.value_types}
    assert totals == {
        "wall": profile.total("wall"),
        "off-CPU": 32 * SECOND,
        "on-CPU": 8 * SECOND,
        "wakers": profile.total("blocked"),
        "calls": profile.total("calls"),
    }


def test_waits_without_samples_are_off_cpu_time() -> None:
    profile = three_troubles()
    graph, _, _ = made(profile)
    assert [each.name for each in graph.value_types] == ["off-CPU"]
    assert graph.total("off-CPU") == profile.total("off-cpu")


def test_samples_have_the_group_of_their_process() -> None:
    graph, _, groups = made(scanned_host())
    for sample in graph.samples:
        assert sample.label(GROUP) == groups.label(sample.label("pid"))
    assert {sample.label(GROUP) for sample in graph.samples} <= set(groups.labels)


def test_small_stacks_are_put_together_and_it_is_told() -> None:
    profile = scanned_host()
    labels = profile.samples[0].labels
    small = [Sample((Frame(f"small{i}"),), (i + 1, 1, 1, 1, 0, 0, 0), labels) for i in range(50)]
    profile.samples += small
    graph, told, _ = made(profile, most=20)
    assert "46 of 66 stacks" in told
    assert graph.total("wall") == profile.total("wall")
    assert graph.total("off-CPU") == 32 * SECOND + sum(range(51))
    folded = [sample for sample in graph.samples if sample.stack == (FOLDED,)]
    assert sum(sample.values[0] for sample in folded) == sum(range(47))
    assert len(graph.samples) == 20 + len(folded)
