from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.flame.tree import Key, Node, Tree, build, whole_of
from stallscope.converters.model import Frame, Labels, Module, Profile, Sample, ValueType
from stallscope.converters.writers.base.options import WriteOptions

LIBC = Module("/lib/libc.so.6")
NS = ValueType("off-cpu", "nanoseconds")
COUNT = ValueType("count", "count")
LONGEST = ValueType("longest", "nanoseconds", "max")


def native(name: str, address: int = 0, module: Module | None = LIBC) -> Frame:
    return Frame(name, "native", module, address)


def labels(pid: int, process: str, tid: int = 0, thread: str = "") -> Labels:
    return (("pid", pid), ("process", process), ("thread", thread), ("tid", tid))


def profile(*samples: Sample, types: tuple[ValueType, ...] = (NS,)) -> Profile:
    return Profile(list(types), list(samples))


def outline(tree: Tree) -> list[tuple[int, str, int, int, int]]:
    return [(node.depth, node.key.name, node.start, node.total, node.own) for node in tree.nodes]


def children(tree: Tree, parent: int) -> Iterator[Node]:
    for node in tree.nodes[parent + 1 :]:
        if node.depth <= tree.nodes[parent].depth:
            return
        if node.depth == tree.nodes[parent].depth + 1:
            yield node


def test_merges_stacks_into_a_tree_in_pre_order_children_by_name() -> None:
    main, topk, ioctl, wait = native("main"), native("topk"), native("ioctl"), native("a_wait")
    tree = build(
        profile(
            Sample((main, topk, ioctl), (60,), labels(7, "job")),
            Sample((main, wait), (25,), labels(7, "job")),
            Sample((main, topk), (5,), labels(7, "job")),
            Sample((wait,), (10,), labels(9, "aux")),
        ),
        WriteOptions(),
    )
    assert outline(tree) == [
        (0, "all", 0, 100, 0),
        (1, "aux-9", 0, 10, 0),
        (2, "a_wait", 0, 10, 10),
        (1, "job-7", 10, 90, 0),
        (2, "main", 10, 90, 0),
        (3, "a_wait", 10, 25, 25),
        (3, "topk", 35, 65, 5),
        (4, "ioctl", 35, 60, 60),
    ]
    assert (tree.total, tree.levels, tree.hidden, tree.counted) == (100, 5, 0, "")


def test_call_sites_merge_but_kinds_and_modules_do_not() -> None:
    tree = build(
        profile(
            Sample((native("read", 1),), (1,)),
            Sample((native("read", 2),), (2,)),
            Sample((native("read", 1, Module("/opt/read.so")),), (4,)),
            Sample((Frame("read", "kernel"),), (8,)),
        ),
        WriteOptions(),
    )
    assert [(node.key, node.total) for node in tree.nodes[1:]] == [
        (Key("read", "kernel", ""), 8),
        (Key("read", "native", "/lib/libc.so.6"), 3),
        (Key("read", "native", "/opt/read.so"), 4),
    ]


def test_equal_frames_that_are_different_objects_merge() -> None:
    samples = [Sample((native("a"), native("b")), (1,)) for _ in range(5)]
    assert outline(build(profile(*samples), WriteOptions())) == [
        (0, "all", 0, 5, 0),
        (1, "a", 0, 5, 0),
        (2, "b", 0, 5, 5),
    ]


def test_counts_stand_beside_the_chosen_value_and_are_no_value_of_themselves() -> None:
    data = profile(Sample((native("a"),), (100, 3, 50)), Sample((native("b"),), (50, 4, 9)), types=(NS, COUNT, LONGEST))
    times = build(data, WriteOptions())
    assert times.counted
    assert [(node.key.name, node.total, node.events) for node in times.nodes] == [
        ("all", 150, 7),
        ("a", 100, 3),
        ("b", 50, 4),
    ]
    events = build(data, WriteOptions(value="count"))
    assert not events.counted
    assert events.value_type == COUNT
    assert [(node.key.name, node.total, node.events) for node in events.nodes] == [
        ("all", 7, 0),
        ("a", 3, 0),
        ("b", 4, 0),
    ]


@pytest.mark.parametrize("value", ["nonsense", "longest"])
def test_a_column_that_cannot_be_drawn_is_a_usage_error(value: str) -> None:
    with pytest.raises(StallscopeError) as caught:
        build(profile(types=(NS, LONGEST)), WriteOptions(value=value))
    assert caught.value.exit_code == 2
    assert "off-cpu" in caught.value.remedy


def test_threads_stand_on_their_process() -> None:
    tree = build(
        profile(
            Sample((native("f"),), (1,), labels(7, "job", 8, "worker")),
            Sample((native("f"),), (2,), labels(7, "job", 9, "worker")),
        ),
        WriteOptions(per_thread=True),
    )
    assert [(node.depth, node.key.name, node.total) for node in tree.nodes] == [
        (0, "all", 3),
        (1, "job-7", 3),
        (2, "worker-8", 1),
        (3, "f", 1),
        (2, "worker-9", 2),
        (3, "f", 2),
    ]


def test_samples_without_labels_stand_on_all_and_a_few_without_are_said_to_be_unknown() -> None:
    bare = Sample((native("f"),), (1,))
    assert [node.key.name for node in build(profile(bare), WriteOptions(per_thread=True)).nodes] == ["all", "f"]
    mixed = build(
        profile(bare, Sample((native("g"),), (1,), labels(7, "job")), Sample((), (1,), (("pid", 0),))), WriteOptions()
    )
    assert {node.key.name for node in mixed.nodes if node.depth == 1} == {"[unknown process]", "job-7", "[unknown]-0"}


def test_values_of_zero_and_below_are_ignored() -> None:
    tree = build(
        profile(Sample((native("a"),), (0,)), Sample((native("b"),), (-5,)), Sample((native("c"),), (3,))),
        WriteOptions(),
    )
    assert outline(tree) == [(0, "all", 0, 3, 0), (1, "c", 0, 3, 3)]


def test_nothing_gives_no_nodes() -> None:
    tree = build(profile(Sample((native("a"),), (0,))), WriteOptions())
    assert (tree.nodes, tree.levels, tree.total) == ([], 0, 0)


def test_narrow_branches_are_left_out_counted_and_keep_their_room() -> None:
    tree = build(
        profile(
            Sample((native("a"), native("deep"), native("deeper")), (1,)),
            Sample((native("b"),), (989,)),
            Sample((native("c"),), (10,)),
        ),
        WriteOptions(),
        minimum=0.01,
    )
    assert outline(tree) == [(0, "all", 0, 1000, 0), (1, "b", 1, 989, 989), (1, "c", 990, 10, 10)]
    assert tree.hidden == 1


def test_a_stack_of_20000_frames() -> None:
    stack = tuple(native(f"f{i % 7}") for i in range(20_000))
    tree = build(profile(Sample(stack, (3,)), Sample(stack[:10_000], (4,))), WriteOptions())
    assert tree.levels == 20_001
    assert [tree.nodes[i].total for i in (0, 10_000, 10_001, 20_000)] == [7, 7, 3, 3]
    assert tree.nodes[10_000].own == 4


def test_order_of_samples_does_not_matter_and_every_node_adds_up() -> None:
    rng = random.Random(5)
    frames = [native(f"f{i}") for i in range(6)]
    samples = [
        Sample(tuple(rng.choices(frames, k=rng.randint(0, 6))), (rng.randint(1, 99),), labels(rng.randint(1, 3), "p"))
        for _ in range(400)
    ]
    tree = build(profile(*samples), WriteOptions())
    assert tree.total == sum(sample.values[0] for sample in samples)
    for i, node in enumerate(tree.nodes):
        below = list(children(tree, i))
        assert node.total == node.own + sum(child.total for child in below)
        edge = node.start
        for child in below:
            assert child.start == edge
            edge += child.total
    rng.shuffle(samples)
    assert build(profile(*samples), WriteOptions()).nodes == tree.nodes


def test_roots_are_the_labels_that_are_asked_for() -> None:
    waiting: Labels = (("pid", 7), ("process", "job"), ("state", "D"))
    data = profile(
        Sample((native("f"),), (1,), waiting),
        Sample((native("f"),), (2,), (("pid", 7), ("process", "job"), ("state", "S"))),
        Sample((native("f"),), (4,), (("pid", 9), ("process", "job"))),
    )
    by_state = build(data, WriteOptions(roots=("state", "process", "nowhere")))
    assert [(node.depth, node.key.name, node.total) for node in by_state.nodes if node.key.kind == "root"] == [
        (0, "all", 7),
        (1, "D", 1),
        (2, "job-7", 1),
        (1, "S", 2),
        (2, "job-7", 2),
        (1, "[unknown state]", 4),
        (2, "job-9", 4),
    ]
    assert outline(build(data, WriteOptions(roots=()))) == [(0, "all", 0, 7, 0), (1, "f", 0, 7, 7)]
    threads = build(data, WriteOptions(roots=("process", "thread")))
    assert threads == build(data, WriteOptions(per_thread=True)) == build(data, WriteOptions())


DIFFERENTIAL = (ValueType("after", "count"), ValueType("before", "count"))


def test_differences_of_a_differential_profile_count_what_is_gone_too() -> None:
    main, old, new, both = native("main"), native("old"), native("new"), native("both")
    data = profile(
        Sample((main, old), (0, 30)),
        Sample((main, new), (10, 0)),
        Sample((main, both), (5, 7)),
        Sample((main,), (4, 4)),
        types=DIFFERENTIAL,
    )
    tree = build(data, WriteOptions())
    assert tree.differential and not tree.counted
    assert [(node.key.name, node.total, node.own, node.delta, node.own_delta) for node in tree.nodes] == [
        ("all", 19, 0, -22, 0),
        ("main", 19, 4, -22, 0),
        ("both", 5, 5, -2, -2),
        ("new", 10, 10, 10, 10),
    ]
    assert (tree.hidden, tree.levels) == (1, 3)
    before = build(data, WriteOptions(value="before"))
    assert [(node.key.name, node.total, node.delta) for node in before.nodes] == [
        ("all", 41, -22),
        ("main", 41, -22),
        ("both", 7, -2),
        ("old", 30, -30),
    ]


def test_a_differential_profile_without_width_has_no_nodes() -> None:
    tree = build(profile(Sample((native("a"),), (0, 3)), types=DIFFERENTIAL), WriteOptions())
    assert (tree.nodes, tree.total, tree.differential) == ([], 0, True)


def test_only_differential_profiles_have_differences() -> None:
    tree = build(profile(Sample((native("a"),), (5, 3)), types=(NS, COUNT)), WriteOptions())
    assert not tree.differential
    assert {node.delta for node in tree.nodes} == {0}


def test_reversed_stacks_end_in_their_roots() -> None:
    main, wait, run = native("main"), native("wait"), native("run")
    data = profile(
        Sample((main, wait), (60,), labels(7, "job", 8, "worker")),
        Sample((run, wait), (30,), labels(7, "job", 9, "loop")),
        Sample((main, wait), (10,), labels(5, "aux", 5, "aux")),
    )
    tree = build(data, WriteOptions(reverse=True, per_thread=True))
    assert outline(tree) == [
        (0, "all", 0, 100, 0),
        (1, "wait", 0, 100, 0),
        (2, "main", 0, 70, 0),
        (3, "aux-5", 0, 10, 0),
        (4, "aux-5", 0, 10, 10),
        (3, "worker-8", 10, 60, 0),
        (4, "job-7", 10, 60, 60),
        (2, "run", 70, 30, 0),
        (3, "loop-9", 70, 30, 0),
        (4, "job-7", 70, 30, 30),
    ]
    assert outline(build(profile(Sample((main, wait), (5,))), WriteOptions(reverse=True)))[1:] == [
        (1, "wait", 0, 5, 0),
        (2, "main", 0, 5, 5),
    ]


def test_equal_frames_that_are_not_one_object_are_one_node() -> None:
    samples = [Sample((Frame("ma" + "in"[:i], "native"), Frame("f")), (i,), (("pid", i),)) for i in (2, 2, 2)]
    tree = build(Profile([NS], samples), WriteOptions())
    assert [(node.key.name, node.total) for node in tree.nodes][1:] == [("[unknown]-2", 6), ("main", 6), ("f", 6)]


def test_a_node_knows_which_state_most_of_it_was_spent_in() -> None:
    main, wait = native("main"), native("wait")

    def sample(value: int, state: str, *stack: Frame) -> Sample:
        return Sample(stack, (value,), (("state", state),) if state else ())

    data = profile(
        sample(5, "idle", main, wait), sample(3, "", main, wait), sample(4, "stopped", main), sample(4, "", main)
    )
    tree = build(data, WriteOptions(), label="state")
    assert {node.key.name: node.label for node in tree.nodes} == {"all": "", "main": "", "wait": "idle"}
    assert {node.label for node in build(data, WriteOptions()).nodes} == {""}


def test_the_root_may_stand_for_more_than_was_measured() -> None:
    data = profile(Sample((native("main"),), (100,)))
    tree = build(data, WriteOptions(), whole=400)
    assert (tree.total, tree.measured) == (400, 100)
    assert outline(tree) == [(0, "all", 0, 400, 0), (1, "main", 0, 100, 100)]
    assert build(data, WriteOptions()).measured == 100


@pytest.mark.parametrize("whole", [-1, 99_999, 1e19, float("inf"), float("nan")])
def test_a_whole_that_is_refused_is_told_both_limits(whole: float) -> None:
    with pytest.raises(StallscopeError, match="there is 100,000") as error:
        whole_of(whole, 100_000)
    assert error.value.remedy == "choose 100,000 to 9.22e+18"
    assert error.value.exit_code == 2


def test_both_limits_of_a_whole_are_taken() -> None:
    assert whole_of(100_000, 100_000) == 100_000
    assert whole_of(float("9.22e+18"), 100_000) == 9_220_000_000_000_000_000


@pytest.mark.parametrize(
    ("names", "drawn", "events", "things"),
    [
        ("off-cpu:nanoseconds count:count", "off-cpu", 20, "times"),
        ("samples:count cpu:nanoseconds", "cpu", 10, "samples"),
        ("samples:count period:cycles", "period", 10, "samples"),
        ("contentions:count delay:nanoseconds", "delay", 10, "contentions"),
        ("alloc_objects:count alloc_space:bytes inuse_objects:count inuse_space:bytes", "inuse_space", 30, "objects"),
        ("alloc_objects:count alloc_space:bytes inuse_objects:count inuse_space:bytes", "alloc_space", 10, "objects"),
        ("a:count b:count time:nanoseconds", "time", 0, ""),
        ("alloc_objects:count alloc_space:bytes inuse_space:bytes", "inuse_space", 0, ""),
        ("cpu:nanoseconds", "cpu", 0, ""),
    ],
)
def test_what_is_counted_beside_a_value(names: str, drawn: str, events: int, things: str) -> None:
    types = [ValueType(*each.split(":")) for each in names.split()]
    profile = Profile(types, [Sample((Frame("f"),), tuple(10 * (i + 1) for i in range(len(types))))])
    tree = build(profile, WriteOptions(value=drawn))
    assert (tree.counted, tree.nodes[0].events) == (things, events)
