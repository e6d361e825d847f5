from __future__ import annotations

import pytest
from stallscope.converters.readers import detect
from stallscope.converters.readers.foreign import recognise

EXAMPLES = {
    "UTF-16": "a;b 3\n".encode("utf-16-le") * 2,
    "UTF-16 without": "a;b 3\n".encode("utf-16-be") * 2,
    "UTF-32": "a;b 3\n".encode("utf-32-le") * 2,
    "recording of memray": b'\x04"M\x18@@\xc0|P\0\0\xf9\x05memray\0\x0d\0',
    "of memray": b"memray\0\x0d\0",
    "lz4": b'\x04"M\x18@@\xc0|P\0\0\xf9\x05a;b 3\n',
    "pyinstrument": b'{"start_time": 17.5,"duration": 2.0,"sample_count": 1,"root_frame": {"function": "f"}}',
    "session of pyinstrument": b'{"start_time": 1.5, "duration": 0.3, "sample_count": 249, "start_call_stack": []}',
    "of pyinstrument": b'{"frame_records": [[["main\\u0000a.py\\u00001"], 0.1]], "start_time": 1.5}',
    "report of pyinstrument": b"\n  _     ._   __/__   _ _  _  _ _/_   Recorded: 10:16:24  Samples:  267\n",
    "recording of line_profiler": b"\x80\x05\x95\x83\0\0\0\x8c\x1bline_profiler.line_profiler\x94\x8c\tLineStats",
    "report of line_profiler": b"Timer unit: 1e-06 s\n\nTotal time: 0.1 s\nFile: lp.py\n",
    "yappi": b"\x80\x02cyappi\nYFuncStats\nq\0)\x81q\x01}q\x02(X\x0b",
    "py-spy dump --json": b'[\n  {\n    "pid": 30087,\n    "thread_id": 140262411192000,\n    "thread_name": "w",\n',
    "execution trace of Go": b"go 1.22 trace\0\0\0\x01",
    "Go's goroutines": b"goroutine 1 [running]:\nmain.main()\n\t/src/a.go:12 +0x1d\n",
    "goroutines (debug=2": b"panic: oh no\n\ngoroutine 7 gp=0xc00 m=0 mp=0x1 [chan receive, 5 minutes]:\nmain.f(0x1)\n",
    "report of node --prof-process": b"Statistical profiling result from isolate-0x27-1-v8.log, (263 ticks, 17 u",
    "heaptrack": b"v 10500 3\nX ./h\nI 1000 1ec5\n",
    "massif": b"desc: --massif-out-file=ms.out\ncmd: ./h\ntime_unit: i\n",
    "DHAT": b'{"dhatFileVersion":2\n,"mode":"heap","verb":"Allocated"',
    "recording of perf": b"PERFILE2\0\0",
    "ZIP": b"PK\x03\x04\x14",
    "Java Flight Recorder": b"FLR\0\0\x02",
    "heap dump of Java": b"JAVA PROFILE 1.0.2\0",
    "Go's and gperftools' profiles": b"heap profile: 12: 34 [56: 78] @ heap/512\n1: 2 [3: 4] @ 0x1 0x2\n",
    "gperftools' CPU profiles": b"\0" * 8 + b"\x03" + b"\0" * 7 + b"\0" * 8 + b"\x10\x27",
    "callgrind": b"# callgrind format\nversion: 1\nevents: Ir\n\nfl=a.c\nfn=main\n1 2\n",
    "macOS's sample": b"Analysis of sampling rg (pid 1) every 1 millisecond\n",
    "copied from Instruments": b"Running Time\tSelf (ms)\t\tSymbol Name\n",
    "xctrace": b'<?xml version="1.0"?>\n<trace-query-result>',
    "pmcstat": b"@ inst_retired.any [35 samples]\n",
    "of GHC": b"\tSun Aug  6 14:52 2023 Time and Allocation Profiling Report  (Final)\n",
    "GHC, as JSON": b'{\n"program": "x",\n"cost_centres": []}',
    "Papyrus": b"Stack_1 log opened (PC)\n",
    "log of node --prof": b"v8-version,6,0\nshared-library,x\n",
    "--preprocess": b'{"code":[{"name":"a"}],"functions":[]}',
    "heap profile of V8": b'{"head":{"callFrame":{"functionName":"(root)"},"selfSize":0,"children":[]}}',
    "stackprof": b'{"version":1.2,"mode":"wall","interval":1000,"samples":15,"missed_samples":0,"frames":{}}',
    "Firefox": b'{"meta":{"interval":1,"processType":0},"libs":[],"threads":[]}',
    "Safari": b'{"version":1,"recording":{"displayName":"x"}}',
    "jstack": b"2026-01-01 10:00:00\nFull thread dump OpenJDK 64-Bit Server VM (17):\n",
    "xdebug)": b"version: 1\ncreator: xdebug 3.0.2\nevents: Time_(10ns)\n\nfl=(1) php\nfn=(1) main\n",
    "trace of xdebug": b"TRACE START [2026-01-01 10:00:00]\n",
    "Visual Studio": b"\nLevel,Function Name,Number of Calls,Elapsed\n",
    "picture": b'<svg xmlns="http://www.w3.org/2000/svg">',
    "program": b"\x7fELF\x02",
    "packed, or no profile": b"\x89PNG\r\n",
}


@pytest.mark.parametrize("what", EXAMPLES)
def test_what_it_is_is_told(what: str) -> None:
    found = recognise(EXAMPLES[what])
    assert found is not None
    assert what in found.what
    assert found.remedy


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"a;b 1\n",
        b"{}",
        b"main 3\n",
        b'{"traceEvents": []}',
        b"events: 3\n",
        b"heap profile;x 3\n",
        b"\0" * 24,
        b"[]",
        b"goroutine 3\n",
        b"goroutine;main 3\n",
        b'{"start_time": 3}',
        b"panic: f 3\n",
    ],
)
def test_what_is_not_known(text: bytes) -> None:
    assert recognise(text) is None


def test_nothing_that_is_read_is_taken_for_something_else() -> None:
    from pathlib import Path

    data = Path(__file__).resolve().parents[2] / "data"
    inputs = [path for name in detect.formats() for path in (data / name).glob("*") if path.suffix != ".golden"]
    assert len(inputs) > 80
    assert {path.name: recognise(path.read_bytes()[:65536]) for path in inputs if recognise(path.read_bytes())} == {}


@pytest.mark.parametrize(
    "text",
    [
        b"panic: \n",
        b'{"start_time":',
        b"\x80\x04",
        b"{",
        b'{"label":',
        b"events:\n",
        b'{"mode":',
        b" ",
        b"#\n",
        b"x\n COST",
    ],
)
def test_hostile_text_takes_no_time(text: bytes) -> None:
    recognise(text * 10_000)
