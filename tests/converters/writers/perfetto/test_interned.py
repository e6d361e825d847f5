from __future__ import annotations

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as proto
from stallscope.converters.model import Frame, Module
from stallscope.converters.writers.perfetto.interned import Interned

LIBC = Module("/usr/lib/libc.so.6", "ab12", 4096)


def test_frames_have_all_that_is_known() -> None:
    interned = Interned()
    main, call = Frame("main"), Frame("read", "native", LIBC, 64, "read.c", 12)
    wait = Frame("pipe_read", "kernel")
    assert [interned.stack((main, call, wait)), interned.stack((main, wait))] == [1, 2]
    data = proto.InternedData.FromString(b"".join(interned.messages()))
    names = {each.iid: each.str.decode() for each in data.function_names}
    assert [names[frame.function_name_id] for frame in data.frames] == ["main", "read", "pipe_read"]
    assert [frame.HasField("rel_pc") for frame in data.frames] == [False, True, False]
    (mapping,) = data.mappings
    assert (data.frames[1].mapping_id, data.frames[1].rel_pc, mapping.end) == (mapping.iid, 64, 4096)
    assert (data.build_ids[0].str, data.mapping_paths[0].str) == (b"\xab\x12", b"/usr/lib/libc.so.6")
    assert (data.source_paths[0].str, data.frames[1].line_number) == (b"read.c", 12)
    assert [proto.Frame.Kind.Name(frame.kind) for frame in data.frames] == ["KIND_NATIVE", "KIND_NATIVE", "KIND_KERNEL"]
    assert [list(stack.frame_ids) for stack in data.callstacks] == [[1, 2, 3], [1, 3]]


def test_a_frame_without_an_address_has_no_file() -> None:
    """The definition of Frame asks for an address where there is a mapping."""
    interned = Interned()
    interned.stack((Frame("inlined", "native", LIBC),))
    data = proto.InternedData.FromString(b"".join(interned.messages()))
    assert (data.frames[0].mapping_id, data.frames[0].HasField("rel_pc"), len(data.mappings)) == (0, False, 0)


def test_texts_are_numbered_once_and_each_kind_for_itself() -> None:
    interned = Interned()
    assert [interned.event("a"), interned.event("b"), interned.event("a"), interned.value("b")] == [1, 2, 1, 1]
    assert [interned.category("c"), interned.annotation("d")] == [1, 1]
    data = proto.InternedData.FromString(b"".join(interned.messages()))
    assert [(each.iid, each.name) for each in data.event_names] == [(1, "a"), (2, "b")]
    assert [each.str for each in data.debug_annotation_string_values] == [b"b"]
    assert (data.event_categories[0].name, data.debug_annotation_names[0].name) == ("c", "d")


def test_much_comes_in_parts() -> None:
    interned = Interned()
    for i in range(10_000):
        interned.event(f"{i:0100}")
    sizes = [len(part) for part in interned.messages()]
    assert len(sizes) > 3
    assert max(sizes) < 1 << 19
