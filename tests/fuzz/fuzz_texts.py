"""Targets that read text: of /proc, of perf, SystemTap, eu-stack and other tools, and what users ask."""

from __future__ import annotations

import io
import os
import random
from collections.abc import Callable
from typing import Any

import fuzz_seeds
import numpy as np
from fuzz_mutators import Mutator, as_json, as_protobuf, as_text, havoc
from fuzz_seeds import own, these
from fuzz_target import Target, refused
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.names import cxx, rust
from stallscope.converters.names.demangle import MAX_NAME, Demangler
from stallscope.converters.readers import detect
from stallscope.converters.readers.base.options import ReadOptions
from stallscope.converters.readers.base.source import Source
from stallscope.converters.readers.depth import DEEPEST
from stallscope.converters.readers.registry import READERS
from stallscope.converters.readers.stap.lines import Lines
from stallscope.tracers.base import (
    cgroups,
    conditions,
    lock_table,
    open_descriptors,
    origins,
    procfs,
    ranks,
    scripts,
    socket_tables,
)
from stallscope.tracers.engines.eu_stack import walker
from stallscope.tracers.engines.perf.passed import Passed
from stallscope.tracers.engines.perf.passing import Passing
from stallscope.tracers.engines.perf.records import Records
from stallscope.tracers.engines.perf.threads import Threads
from stallscope.tracers.engines.stap import calls, module_file, threads, wakes
from stallscope.tracers.expressions.asked import Asked, Fault
from stallscope.tracers.images import data_maps, maps
from stallscope.tracers.kernel import tracepoint_format
from stallscope.tracers.measures.wakeup import WakeUp
from stallscope.tracers.outside import lookups, mounts
from stallscope.tracers.symbols import kallsyms, lines, perfmap

_ADDRESSES = np.array([0, 1, 0x1000, 0x400010, 0x7F0000000000, 1 << 63, (1 << 64) - 1], np.uint64)


def descriptors(data: bytes) -> None:
    """/proc/PID/fdinfo, mountinfo and the tables of sockets."""
    assert all(target.fd >= 0 for target in open_descriptors.targets_of(data))
    open_descriptors.fields_of(data)
    assert all(number >= 0 for number in open_descriptors.mounts_of(data))
    found = [*socket_tables.parse_internet(data, "tcp"), *socket_tables.parse_internet(data, "udp")]
    socket_tables.SocketTables(found, socket_tables.parse_unix(data))


def perf_map(data: bytes) -> None:
    """perf-PID.map."""
    found = perfmap.PerfMap(data).find(_ADDRESSES)
    for name, address in zip(found, _ADDRESSES.tolist(), strict=True):
        if name:
            perfmap.jit_frame(name, address)


def mappings(data: bytes) -> None:
    """/proc/PID/maps, as one address space and as another that followed it."""
    found = maps.parse_maps(data)
    space, other = maps.AddressSpace(), maps.AddressSpace(found)
    for mapping in found:
        space.map_unless_other(mapping)
        other.map_in_gaps(mapping)
    for one in (space, other):
        one.bulk_find(_ADDRESSES)
        ranges = [(mapping.start, mapping.end) for mapping in one]
        assert all(begin < end for begin, end in ranges)
        assert all(before[1] <= after[0] for before, after in zip(ranges, ranges[1:], strict=False))
    rows = data_maps.parse_data_maps(data)
    for address in _ADDRESSES.tolist():
        data_maps.find(rows, address)


def environment(data: bytes) -> None:
    """/proc/PID/environ and cmdline."""
    ranks.ranks_in(data)
    origins.variables_in(data)
    conditions.variables_in(data)
    scripts.script_of(data.split(b"\0"))


def control_groups(data: bytes) -> None:
    """/proc/PID/cgroup and mountinfo."""
    known = cgroups.Cgroups()
    known._hierarchies = cgroups.hierarchies(data, b"cpu")
    known.limits(known.of(data))
    origins.group_in(data)
    cgroups.Cgroups().of(data)


def processes(data: bytes) -> None:
    """Files of /proc/PID that the kernel writes; a process's name in them is its own."""
    before = procfs._read
    stat = b"7 (%b) S 1 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 99 0 0\n" % data[:64]
    name = data[:64].replace(b"\\", b"\\\\").replace(b"\n", b"\\n")
    status = b"Name:\t%b\nUmask:\t0022\nTgid:\t7\nNgid:\t0\nPid:\t8\nNSpid:\t8\t3\n" % name
    procfs._read = lambda path: {"stat": stat, "status": status}.get(os.path.basename(path), data)
    try:
        procfs.comm(1)
        assert procfs.tgid_of(1) == 7
        assert procfs.innermost_id(1) == 3
        assert procfs.state(1) == "S"
        assert procfs._parent(1) == 1
        assert procfs.began(1, 1) == 99
        lock_table.blocked_in(data)
    finally:
        procfs._read = before


def mapped_places(data: bytes) -> None:
    """/proc/PID/maps and mountinfo, in the process that reads others."""
    path = data[:512].replace(b"\n", b"\\012")
    row = b"%x-%x r-xp 00000000 00:01 7      %b\n"
    before = lookups.maps_of
    text = row % (0x1000, 0x2000, path) + row % (0x3000, 0x4000, path) + row % (0x5000, 0x6000, b"/x")
    lookups.maps_of = lambda pid, **_: (text, True)  # type: ignore[assignment]
    try:
        for start in (0x1000, 0x3000, 0x5000):
            place = lookups.Place(start, start + 0x1000, 0, os.makedev(0, 1), 7, path)
            assert [found.start for found in lookups.places_of(1, place)] == [start]
    finally:
        lookups.maps_of = before
    for escaped in (b"\\", b" ", b"\t", b"\n"):
        path = path.replace(escaped, b"\\%03o" % escaped[0])
    told = b"39 25 0:43 / %b rw - overlay overlay rw\n40 25 0:44 / /mnt rw - fuse.x a rw,user_id=7\n" % path
    assert mounts.kind_of_mount(told, 40) == (b"fuse.x", b"rw,user_id=7")


def kernel_symbols(data: bytes) -> None:
    """/proc/kallsyms."""
    kallsyms.Kallsyms(data).find(_ADDRESSES)


def tracepoint(data: bytes) -> None:
    """The format of a tracepoint."""
    found = tracepoint_format.parse_format("a:b", data[: 1 << 13].decode("utf-8", "replace"))
    found.flags()
    found.offset("prev_state", 8)


def perf_text(data: bytes) -> None:
    """Reads what ``perf script`` prints, as it comes."""
    state, chance = Threads(0), random.Random(len(data))
    records = Records(lambda _kind, _pid, tid, _time: tid != 7)
    at = 0
    while at < len(data):
        size = chance.choice((1 << 12, 1 << 16, 100))
        for record in records.feed(data[at : at + size]):
            state.take(record)
        at += size
    for record in records.feed(b""):
        state.take(record)
    state.finish(1 << 50)
    state.waits()
    state.running(1)
    state.counted()


def perf_data(data: bytes) -> None:
    """perf's recording, as it is passed on."""
    passing, passed = Passing(), Passed()
    for at in range(0, len(data) + 4096, 4096):
        b"".join(passing.feed(data[at : at + 4096]))
        passed.feed(passing.notices)
        passing.notices = bytearray()


def stap_lines(data: bytes) -> None:
    """Reads what our scripts for SystemTap print."""
    found = Lines()
    state = threads.Threads(0, None, lambda wait, parts: None)
    taken = [state.take, calls.Calls({}, alone=True).take, wakes.Wakes(WakeUp()).take]
    for at in range(0, len(data), 4096):
        for line in found.feed(data[at : at + 4096]):
            taken[0](line, 0)
            for take in taken[1:]:
                take(line)
    found.finish()
    found.stacks(None)


def stap_module(data: bytes) -> None:
    """A compiled module, and what staprun says."""
    module_file._functions(data)
    module_file.without_probe(data.decode("utf-8", "surrogateescape"))


def eu_stack(data: bytes) -> None:
    """Reads what eu-stack prints."""
    walker.Walker("/bin/false")._read(data, walker.Walk(), set(range(1 << 16)))


def symbolizer_json(data: bytes) -> None:
    """llvm-symbolizer's answers."""
    lines._read_json(lines._lines_of(io.BytesIO(data)), [0x1000, 0x2000, 0x3000] * 10)


def symbolizer_text(data: bytes) -> None:
    """addr2line's answers."""
    lines._read_text(lines._lines_of(io.BytesIO(data)), [0x1000, 0x2000, 0x3000] * 10)


def mangled(data: bytes) -> None:
    """Names of Rust, and readable ones of C++."""
    for line in data.split(b"\n")[:64]:
        name = line.decode("utf-8", "backslashreplace")
        rust.demangle_rust(name)
        rust.finish_rust(name)
        cxx.inlined_names(line)
        cxx.arguments_at(line)
        cxx.without_arguments(line)


def demangler(data: bytes) -> None:
    """Names of C++, by the process that the demangler has."""
    wanted = [line.decode("utf-8", "surrogateescape") for line in data.split(b"\n")][:2000]
    found = Demangler().demangle(wanted)
    assert found.keys() == set(wanted)
    assert all(len(name) <= max(MAX_NAME, len(key)) for key, name in found.items())


def question(data: bytes) -> None:
    """Reads what users ask."""
    texts = data.decode("utf-8", "surrogateescape").split("\n")
    for texts_of in ({"where": texts[:3]}, {"declared": texts[:2]}, {"hists": texts[:1]}, {"prints": texts[:1]}):
        kinds: dict[str, Any] = texts_of
        try:
            Asked.parse(**kinds).bind()
        except Fault:
            continue


def reading(name: str) -> Callable[[bytes], None]:
    """A reader of `trace-convert`."""

    def read(data: bytes) -> None:
        chance = random.Random(len(data))
        flags = [chance.random() < 0.5 for _ in range(3)]
        options = ReadOptions(*flags, chance.choice(("", "cycles")) if READERS[name].has_events else "")
        try:
            if chance.random() < 0.1:
                found(data)
            profile = detect.read_source(Source(io.BytesIO(data), "input"), options, name)
        except StallscopeError as error:
            refused(error)
            raise
        for sample in profile.samples:
            if len(sample.values) != len(profile.value_types) or not all(frame.name for frame in sample.stack):
                raise AssertionError(f"not a sample: {sample!r}")
            if len(sample.stack) > DEEPEST:
                raise AssertionError(f"{len(sample.stack)} frames")

    return read


def found(data: bytes) -> None:
    """Detects the format."""
    try:
        detect.detect(Source(io.BytesIO(data), "input"))
    except StallscopeError as error:
        refused(error)


_JSON = {"speedscope", "chrome", "cpuprofile"}


def _mutator(name: str) -> Mutator:
    return as_json if name in _JSON else as_text


_OURS = (StallscopeError,)
_PERF_RECORDS = (
    b"swapper     0/0       100.000000001:          1 sched:sched_switch: prev_comm=a prev_pid=7 prev_prio=120"
    b" prev_state=S ==> next_comm=b next_pid=8 next_prio=120\n\tffffffff81000010 schedule+0x10 ([kernel.kallsyms])\n"
    b"\t    7f0000001000 [unknown] (/usr/lib/libc.so.6)\n\n"
    b"python3     7/8       100.000000900:     250000 cpu-clock:u: \n\t    401000 py::f:/a.py+0x4 (/tmp/perf-7.map)\n\n"
    b"a     7/7       101.000000000: PERF_RECORD_SWITCH OUT          next pid/tid:     8/8\n"
    b"b     8/8       101.000000500: PERF_RECORD_SWITCH IN           prev pid/tid:     7/7\n"
    b"a     7/7       102.000000000: PERF_RECORD_FORK(7:9):(7:7)\n"
    b"a     7/7       102.000000100: PERF_RECORD_COMM exec: x:7/7\n"
    b"a     7/7       103.000000000: PERF_RECORD_LOST lost 3\na     7/9   104.000000000: PERF_RECORD_EXIT(7:9):(7:7)\n"
)
_MAP = b"400000 20 py::f:/a.py\n0x400010 0x8 LazyCompile:*f a.js:1\n7f0000000000 100 jit\n400000 10 again\n"
_MAPS = (
    b"00400000-00452000 r-xp 00000000 08:02 173521      /usr/bin/x\n"
    b"7f0000000000-7f0000021000 rw-p 00000000 00:00 0 \n"
    b"7f0000010000-7f0000015000 r-xs 00001000 fd:01 7  /a\\012b (deleted)\n"
    b"7ffd0000-7ffe0000 r-xp 00000000 00:00 0           [vdso]\n"
)
_SYMBOLS = (
    b"ffffffff81000000 T _stext\nffffffff81000010 t schedule\nffffffff82000000 T _etext\nffffffffc0000000 t f\t[mod]\n"
)
_FORMAT = (
    b"name: sched_switch\nID: 314\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
    b"\tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;\n\nprint fmt: "
    b'"%s", (REC->prev_state & 15) ? __print_flags(REC->prev_state & 15, "|", { 0x00000001, "S" }, { 0x2, "D" })'
    b' : "R"\n'
)
_EU_STACK = (
    b"PID 7 - process\nTID 7:\n#0  0x00007f0000001000 read+0x10 - /usr/lib/libc.so.6\n#1 0x401000 main - /bin/x\n"
    b"TID 8:\n#0  0x00007f0000001000 - /usr/lib/libc.so.6\n"
)
_RUST = (
    b"_RNvCs1234_7mycrate3foo\n_RINvNtC3std3mem4swapReEC3foo\n_ZN4core3fmt9Formatter3pad17h0123456789abcdefE\n"
    b"_RNvXs_C3fooNtB4_3BarNtB4_5Trait1x\n"
    b"std::f<(int), x->y>(int) const::{lambda()#1}::operator()(int)->g\n_RMCs0_1aA_j\n"
)
_CPP = b"_ZN1a1bEv\n_ZSt4moveIRiEONSt16remove_referenceIT_E4typeEOS2_\n_Z1fIJiiiEEvDpT_\n_ZN3fooIXadL_Z3barvEEE1gEv\n"
_ASKED = (
    b"arg1 > 3 && str(arg2) == \"a\\x00b\" || *(u64*)(arg3 + 8)[2] != 'x'\nn:u64=arg2 & 0xff\n"
    b'"%d %s", retval, str(arg1)',
    b"i8(arg1) - -1 << 3 >= (2 + ~arg6) % 7\nr:u32*=arg1\nr[2] + sp\n",
)
_JSON_LINES = (
    b'{"Address":"0x1000","ModuleName":"x","Symbol":[{"FileName":"/a.c","FunctionName":"f","Line":7,"Column":1}]}\n'
    b'{"Address":"0x2000","Symbol":[]}\n{"Address":"0x3000","Error":{"Message":"no"}}\n'
)
_TEXT_LINES = b"0x0000000000001000\nf\n/a.c:7 (discriminator 3)\ng\n/b.c:?\n0x0000000000002000\n??\n??:0\n"
_ENVIRON = b"PATH=/bin\0RANK=3\0LOCAL_RANK=1\0OMP_NUM_THREADS=8\0MASTER_ADDR=a\0\0python3\0-m\0a.b\0-X\0java\0-jar\0x\0"
_CGROUP = (
    b"0::/user.slice/a\n4:cpu,cpuacct:/a/b\n30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n"
    b"31 23 0:27 /a /sys/fs/cgroup/cpu\\040x rw - cgroup cgroup rw,cpu,cpuacct\n"
)
TARGETS = (
    Target("descriptors", descriptors, own("fdinfo/0", "mountinfo", "net/tcp", "net/unix"), as_text, share=0.5),
    Target("perf-map", perf_map, these(_MAP), as_text),
    Target("maps", mappings, lambda: [_MAPS, *own("maps")()], as_text),
    Target("environ", environment, these(_ENVIRON), as_text),
    Target("cgroup", control_groups, lambda: [_CGROUP, *own("cgroup", "mountinfo")()], as_text, share=0.5),
    Target("proc", processes, own("status", "stat", "comm", "cmdline"), as_text, share=0.5),
    Target("places", mapped_places, these(b"/usr/lib/x.so (deleted)", b"a\r40 ", b"\r1-2 x"), as_text, share=0.5),
    Target("kallsyms", kernel_symbols, these(_SYMBOLS), as_text, share=0.5),
    Target("tracepoint-format", tracepoint, these(_FORMAT), as_text, _OURS, 0.5),
    Target("perf-script-live", perf_text, lambda: [_PERF_RECORDS, *fuzz_seeds.texts_of("perf")()], as_text, share=2),
    Target("perf-data", perf_data, fuzz_seeds.recordings, havoc, share=0.5),
    Target("stap-lines-live", stap_lines, fuzz_seeds.texts_of("stap_lines"), as_text, _OURS, 1.5),
    Target(
        "stap-module", stap_module, these(b'\0name=x\0process("/a").function("f@x.c:1").call\0'), as_text, _OURS, 0.3
    ),
    Target("eu-stack", eu_stack, lambda: [_EU_STACK, *fuzz_seeds.texts_of("gdb")()], as_text),
    Target("symbolizer-json", symbolizer_json, these(_JSON_LINES), as_json, share=0.5),
    Target("symbolizer-text", symbolizer_text, these(_TEXT_LINES), as_text, share=0.5),
    Target("names", mangled, these(_RUST), as_text),
    Target("demangler", demangler, these(_CPP, _RUST), as_text, share=0.5),
    Target("questions", question, these(*_ASKED), as_text, share=0.5),
    *(
        Target(f"read-{name}", reading(name), fuzz_seeds.texts_of(name), _mutator(name), _OURS, 0.7)
        for name in detect.formats()
        if name != "pprof"
    ),
    Target("detect", found, fuzz_seeds.all_texts, as_text),
    Target("read-pprof", reading("pprof"), fuzz_seeds.profiles, as_protobuf, _OURS, 1.5),
)
