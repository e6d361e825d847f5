from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable

import pytest
from stallscope.converters.names import demangle
from stallscope.converters.names.demangle import MAX_NAME, Demangler

BASE36 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def bomb(depth: int) -> str:
    """f(pair<int, int>, pair<that, that>, …): twice as long with each argument."""
    name = "_Z1fSt4pairIiiE"
    for i in range(1, depth + 1):
        number = i - 1
        digits = BASE36[number] if number < 36 else BASE36[number // 36] + BASE36[number % 36]
        name += f"S_IS{digits}_S{digits}_E"
    return name


def test_names_of_all_kinds() -> None:
    names = [
        "main",
        "_ZNSt6vectorIiSaIiEE9push_backERKi",
        "_ZN1AC1Ev.cold",
        "_ZN4core3fmt9Formatter9write_str17h0123456789abcdefE",
        "_RNvC6_123foo3bar",
        "_Znonsense",
        "_Z",
        "_ZN1a\n1bEv",
        "_Z1f;\x1b[31m",
        "_Z4größev",
        "",
        "with space",
    ]
    assert Demangler().demangle(names) == {
        **{name: name for name in names},
        "_ZNSt6vectorIiSaIiEE9push_backERKi": "std::vector<int, std::allocator<int> >::push_back(int const&)",
        "_ZN1AC1Ev.cold": "A::A() [clone .cold]",
        "_ZN4core3fmt9Formatter9write_str17h0123456789abcdefE": "core::fmt::Formatter::write_str",
        "_RNvC6_123foo3bar": "123foo::bar",
    }


FACTORY = "_ZN2v88internal7Factory20InternalizeSubStringINS0_16SeqOneByteStringENS0_6HandleE"
HANDLE = "16is_convertible_vIT0_IT_ENS0_12DirectHandleIS6_EEEEENS4_INS0_6StringEEES7_jjb"


@pytest.mark.parametrize(
    ("name", "readable"),
    [
        ("_Z3addIiEvT_Q8integralIS0_E", "void add<int>(int)"),
        ("_ZN1Q3addIiEEvT_Q8integralIS1_E", "void Q::add<int>(int)"),
        (
            f"{FACTORY}Qsr3stdE{HANDLE}",
            "v8::internal::Factory::InternalizeSubString<v8::internal::SeqOneByteString, v8::internal::Handle>",
        ),
        ("_Z3addIiEvT_X8integralIS0_E", "_Z3addIiEvT_X8integralIS0_E"),
        ("_ZQQQQQQQQ", "_ZQQQQQQQQ"),
        ("_ZN1aQ", "_ZN1aQ"),
    ],
)
def test_constraints_of_newer_compilers_are_left_out(name: str, readable: str) -> None:
    demangler = Demangler()
    assert demangler.demangle([name, "_Z1fv"]) == {name: readable, "_Z1fv": "f()"}
    assert demangler.failed == 0


def test_like_cppfilt(require: Callable[[bool, str], None]) -> None:
    tool = shutil.which("c++filt")
    require(tool is not None, "no c++filt")
    names = [f"_ZN4nest{i % 7}{'x' * (i % 7)}Ev" for i in range(50)] + ["_ZTv0_n24_NSoD1Ev", "_ZGVZ1fvE1x", "_Z1fDpT_"]
    expected = subprocess.run([str(tool)], input="\n".join(names), capture_output=True, text=True).stdout.split("\n")
    assert [Demangler().demangle([name])[name] for name in names[-3:]] == expected[50:53]
    assert Demangler().demangle(names) == dict(zip(names, expected, strict=False))


def test_long_results_are_cut() -> None:
    name = bomb(12)
    result = Demangler().demangle([name])[name]
    assert len(result) == MAX_NAME
    assert result.startswith("f(std::pair<int, int>")
    assert result.endswith("…")


def test_a_bomb_costs_only_its_own_name() -> None:
    """The memory for a bomb is limited: it stays mangled, and names before and behind it are still read."""
    before = time.monotonic()
    demangler = Demangler()
    names = ["_Z1av", bomb(40), "_Z8aardvarkv", "_Zzz", "_Z5zebrav"]
    result = demangler.demangle(names)
    assert result[names[1]] == names[1]
    assert [result[names[i]] for i in (0, 2, 4)] == ["a()", "aardvark()", "zebra()"]
    assert time.monotonic() - before < 30


def test_results_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    demangler = Demangler()
    demangler.demangle(["_Z1av"])
    monkeypatch.setattr(demangle, "_run_worker", lambda names, most: pytest.fail("asked again"))
    assert demangler.demangle(["_Z1av", "plain"]) == {"_Z1av": "a()", "plain": "plain"}


def test_a_dying_worker_loses_one_name_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        demangle, "_run_worker", lambda names, most: ["ok"] * (names.index("_Z1bv") if "_Z1bv" in names else 9)
    )
    demangler = Demangler()
    result = demangler.demangle(["_Z1av", "_Z1bv", "_Z1cv"])
    assert result == {"_Z1av": "ok", "_Z1bv": "_Z1bv", "_Z1cv": "ok"}
    assert demangler.failed == 1


def test_no_more_bytes_than_there_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes are limited, of names and of answers; what is left mangled is counted."""
    monkeypatch.setattr(demangle, "MOST_BYTES", 185)
    names = [f"_Z{40 + i}{'x' * (40 + i)}v" for i in range(3)]
    demangler = Demangler()
    result = demangler.demangle(names)
    assert [name for name in names if result[name] != name] == names[:1]
    assert demangler.failed == 2
    assert demangler.demangle(["_Z1av"]) == {"_Z1av": "_Z1av"}
    assert demangler.failed == 3


@pytest.mark.parametrize("executable", ["/nonexistent", "/bin/false"])
def test_without_a_worker_names_stay_mangled(monkeypatch: pytest.MonkeyPatch, executable: str) -> None:
    monkeypatch.setattr(sys, "executable", executable)
    demangler = Demangler()
    assert demangler.demangle(["_Z1av"]) == {"_Z1av": "_Z1av"}
    assert demangler.failed == 1
