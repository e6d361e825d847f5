"""Formats that we recognise but cannot read, and how to convert them to readable ones."""

from __future__ import annotations

import re
from typing import NamedTuple


class Foreign(NamedTuple):
    """Name of an input's format, and what can be done with it."""

    what: str
    remedy: str


class _Mark(NamedTuple):
    pattern: re.Pattern[bytes]
    """Matched against the first bytes, after white space."""
    what: str
    remedy: str


def _inferno(what: str) -> str:
    return f"inferno-collapse-{what} folds it, and trace-convert reads that"


def _flamegraph(what: str) -> str:
    return f"FlameGraph's stackcollapse-{what} folds it, and trace-convert reads that"


def _mark(pattern: bytes, what: str, remedy: str) -> _Mark:
    return _Mark(re.compile(pattern, re.DOTALL), what, remedy)


_HEAD = 1 << 14
_GO = "go tool pprof -proto FILE > FILE.pb.gz reads it, and trace-convert that"
_PYINSTRUMENT = "pyinstrument -r speedscope writes what can be read (and -r pstats)"
_CPROFILE = "python -m cProfile -o FILE writes what can be read"
_V8 = "node --cpu-prof and DevTools' Performance panel write what can be read: .cpuprofile, and traces"
_MARKS = (
    _mark(
        rb"(?:[\t\n\r -~]\0{1,3}|\0{1,3}[\t\n\r -~]){8}",
        "text in UTF-16 without its mark, or in UTF-32",
        "iconv -f UTF-16LE -t UTF-8 FILE | trace-convert - (or UTF-16BE, UTF-32)",
    ),
    _mark(rb"PERFILE2", "a recording of perf, not its text", "perf script -i FILE | trace-convert -"),
    _mark(rb"(?:\x04\"M\x18.{0,40})?memray\0", "a recording of memray", "memray flamegraph FILE shows it"),
    _mark(rb"\x04\"M\x18", "packed with lz4", "unpack it: lz4 -dc FILE | trace-convert -"),
    _mark(
        rb"\{\s*\"start_time\":[^{]{0,4000}\"root_frame\":",
        "a session of pyinstrument, as JSON",
        _PYINSTRUMENT,
    ),
    _mark(
        rb"\{\s*\"(?:(?:session\":\s*\{\s*\")?start_time\":.{0,4000}\"sample_count\":|frame_records\":\s*\[)",
        "a session of pyinstrument",
        "pyinstrument --load FILE -r speedscope -o OUT.speedscope.json writes what can be read",
    ),
    _mark(rb"_     \._   __/__   _ _", "a report of pyinstrument, as text", _PYINSTRUMENT),
    _mark(
        rb"\x80[\2-\x09].{0,16}line_profiler.{0,24}LineStats",
        "a recording of line_profiler (.lprof)",
        f"it has times of lines and no stacks: python -m line_profiler FILE shows it; {_CPROFILE}",
    ),
    _mark(
        rb"Timer unit: [\d.e+-]+ s\n", "a report of line_profiler", f"it has times of lines and no stacks; {_CPROFILE}"
    ),
    _mark(
        rb"\x80[\2-\x09].{0,16}c?yappi.{0,8}YFuncStats",
        "a recording of yappi (.ystat)",
        "yappi.get_func_stats().save(FILE, type='pstat') writes what can be read",
    ),
    _mark(
        rb"\[\s*\{\s*\"pid\": ?\d+,\s*\"thread_id\": ?\d+,",
        "what py-spy dump --json writes",
        "py-spy dump without --json writes what can be read",
    ),
    _mark(
        rb"go 1\.\d+ trace\0",
        "an execution trace of Go",
        "go tool trace -pprof=sched FILE > FILE.pprof (or net, sync, syscall) makes what can be read of it",
    ),
    _mark(
        rb"(?:(?:panic|fatal error|SIG\w+): [^\n]*\n(?:[^\n]*\n){0,10}\s*)?"
        rb"goroutine \d+(?: [^\n\[]{0,80})? \[[^\n]*\]:\n",
        "text with the stacks of Go's goroutines (debug=2, or of a panic)",
        "the profile has them, too: curl -o FILE.pb.gz http://HOST:PORT/debug/pprof/goroutine, without debug",
    ),
    _mark(
        rb"v [0-9a-f]{1,8} [0-9a-f]{1,4}\nX ",
        "a recording of heaptrack",
        "heaptrack_print -f FILE -F OUT.folded folds it, and trace-convert reads that",
    ),
    _mark(rb"desc: [^\n]*\ncmd: [^\n]*\ntime_unit: ", "massif's format (valgrind)", "ms_print shows it"),
    _mark(rb"\{\s*\"dhatFileVersion\":", "a profile of DHAT (valgrind)", "its dh_view.html shows it"),
    _mark(rb"PK\x03\x04", "a ZIP archive", "unpack it, and name what is inside"),
    _mark(rb"FLR\0", "a recording of Java Flight Recorder", "async-profiler's jfrconv -o collapsed FILE folds it"),
    _mark(rb"JAVA PROFILE 1\.0", "a heap dump of Java", "it has objects and no stacks"),
    _mark(
        rb"heap profile: +\d+: +\d+ \[|--- (?:contention|mutex|growth|heapz)|\w+ profile: total \d",
        "the older text format of Go's and gperftools' profiles",
        _GO,
    ),
    _mark(rb"\0{8}\x03\0{7}\0{8}", "the older binary format of gperftools' CPU profiles", _GO),
    _mark(
        rb"(?:#[^\n]*\n|\s|(?:version|creator|pid|cmd|part|desc|positions):[^\n]*\n){0,30}"
        rb"(?:# callgrind format|events:[^\n]*\n(?:[^\n]*\n){0,30}(?:fl|fn|fi|fe|ob)=)",
        "callgrind's format (valgrind, xdebug)",
        "it has calls and costs, but no stacks: callgrind_annotate and KCachegrind show it",
    ),
    _mark(
        rb"Analysis of sampling |Sampling process \d",
        "a report of macOS's sample",
        _inferno("sample"),
    ),
    _mark(
        rb"(?:Running Time|Weight|Bytes Used)\t[^\n]*Symbol Name",
        "a call tree that was copied from Instruments",
        _flamegraph("instruments.pl"),
    ),
    _mark(rb"<\?xml[^>]*>\s*<trace-query-result", "an export of xctrace", _inferno("xctrace")),
    _mark(rb"@ \S+ \[\d+ samples\]", "a call graph of pmcstat", _flamegraph("pmc.pl")),
    _mark(
        rb"(?:[^\n]*Time and Allocation Profiling Report|[^\n]*\n\s*COST CENTRE)",
        "a profile of GHC",
        _inferno("ghcprof"),
    ),
    _mark(
        rb"\{\s*\"program\":.{0,4000}\"cost_centres\"",
        "a profile of GHC, as JSON",
        "ghc-prof-flamegraph folds text",
    ),
    _mark(rb"\S+ log opened \(PC\)", "a log of Papyrus", "speedscope shows it"),
    _mark(rb"v8-version,", "a log of node --prof", _V8),
    _mark(rb"Statistical profiling result from ", "the report of node --prof-process", _V8),
    _mark(rb"\{\"code\":\[.{0,4000}\"(?:functions|ticks)\":", "what node --prof-process --preprocess makes", _V8),
    _mark(rb"\{\s*\"head\":\s*\{\s*\"callFrame\".{0,2000}\"selfSize\"", "a heap profile of V8", _V8),
    _mark(
        rb"\{(?=.{0,4000}\"mode\":)(?=.{0,4000}\"interval\":)(?=.{0,4000}\"(?:frames|missed_samples)\":)",
        "a profile of stackprof",
        "stackprof --stackcollapse folds what it recorded (not its JSON), and trace-convert reads that",
    ),
    _mark(
        rb"\{\"label\":.{0,16000}\"(?:markers|profile)\":|\{\s*\"meta\":\s*\{.{0,4000}\"(?:processType|preprocessedProfileVersion|geckoVersion)\"",
        "a profile of Firefox",
        "profiler.firefox.com and speedscope show it",
    ),
    _mark(
        rb"\{\s*\"version\":\s*\d+,\s*\"recording\":\s*\{",
        "a recording of Safari",
        "speedscope shows it",
    ),
    _mark(
        rb"(?:[\d-]+ [\d:]+\s+)?Full thread dump ",
        "a thread dump of Java (jstack)",
        _flamegraph("jstack.pl"),
    ),
    _mark(
        rb"(?:Version: [^\n]*\n|File format: [^\n]*\n){0,2}TRACE START",
        "a trace of xdebug",
        _flamegraph("xdebug.php"),
    ),
    _mark(rb"Level,Function Name,Number of Calls", "a report of Visual Studio", _inferno("vsprof")),
    _mark(rb"<(?:\?xml|svg|!DOCTYPE|html)\b", "a picture or a page, not a profile", "name what it was made from"),
    _mark(rb"\x7fELF", "a program or a library", "name what was recorded of it"),
    _mark(
        rb"-----BEGIN |%PDF-|\x89PNG|GIF8|\xff\xd8\xff|BZh|\xfd7zXZ\0|Rar!",
        "packed, or no profile",
        "unpack it, or name another file",
    ),
)


def recognise(head: bytes) -> Foreign | None:
    """The format of an input with these first bytes, if it is one that we recognise but cannot read."""
    text = head[:_HEAD]
    stripped = text.lstrip(b" \t\r\n")
    for mark in _MARKS:
        if mark.pattern.match(stripped) or mark.pattern.match(text):
            return Foreign(mark.what, mark.remedy)
    return None
