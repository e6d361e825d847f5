"""Symbols of rustc 1.95 and what llvm-cxxfilt makes of them; for the legacy scheme, by rustc's escapes."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stallscope.converters.names.rust import demangle_rust, finish_rust


@pytest.mark.parametrize(
    "mangled",
    [
        "_ZN2v88internal6maglev14GraphProcessorI" + "NS1_18Node16Abc" * 400 + "Ev",
        "_ZN" + "1a" * 5000 + "E",
        "_ZN" + "9" * 10000,
    ],
)
def test_long_names_of_others_take_no_time(mangled: str) -> None:
    """A pattern that tries every way to cut digits would not end before the sun does."""
    assert demangle_rust(mangled) is None


@pytest.mark.parametrize(
    ("mangled", "readable"),
    [
        ("_RNvCs6xxl1lAjzDf_1a4main", "a::main"),
        ("_RNvC6_123foo3bar", "123foo::bar"),
        ("_RINvCs6xxl1lAjzDf_1a3genPhEB2_", "a::gen::<*const u8>"),
        ("_RINvCs6xxl1lAjzDf_1a3genFKChElEB2_", 'a::gen::<extern "C" fn(u8) -> i32>'),
        ("_RINvCs6xxl1lAjzDf_1a3genTRShAcj2_uEEB2_", "a::gen::<(&[u8], [char; 2], ())>"),
        ("_RNvXsi_NtNtNtCsgEmfK2I1SDS_4core3fmt3num3impjNtB9_7Display3fmt", "<usize as core::fmt::Display>::fmt"),
        (
            "_RNvYINtNtCslNYArtu3iFV_5alloc3vec3VechENtNtCsjrHSEGnQ3l9_3std2io5Write9write_fmtBF_",
            "<alloc::vec::Vec<u8> as std::io::Write>::write_fmt",
        ),
        (
            "_RINvNtCs6xxl1lAjzDf_1au11ncode_cta3gu9gre_6ka8iINtNtCsgEmfK2I1SDS_4core6option6OptionlEEB4_",
            "a::ünïcode::größe::<core::option::Option<i32>>",
        ),
        ("_RNCNvMs4_NtCsgY6Mt91CT9J_14rustc_demangle2v0NtB7_7Printer10print_type0B9_",
         "<rustc_demangle::v0::Printer>::print_type::{closure#0}"),
        ("_RNvCs6xxl1lAjzDf_1a4main.llvm.1234", "a::main"),
        ("_ZN4core3fmt9Formatter9write_str17h0123456789abcdefE", "core::fmt::Formatter::write_str"),
        ("_ZN4core3fmt9Formatter9write_str17h0123456789abcdefE.llvm.99", "core::fmt::Formatter::write_str"),
        ("_ZN71_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$u20$foo..Bar$LT$Test$GT$$GT$3bar17h930b740aa94f1d3aE",
         "<Test + 'static as foo::Bar<Test>>::bar"),
        ("_ZN13$RF$a$BP$b$C$4main17h0123456789abcdefE", "&a*b,::main"),
    ],
)  # fmt: skip
def test_names(mangled: str, readable: str) -> None:
    assert demangle_rust(mangled) == readable


@pytest.mark.parametrize(
    "mangled",
    [
        "",
        "main",
        "_R",
        "_RNv",
        "_RNvC6_123foo",
        "_RNvC9999_a3bar",
        "_RNvC6_123foo3ba",
        "_RB_",
        "_RNvB0_3foo",
        "_ZN4core3fmtE",
        "_ZN4core3fmt17hzzzzzzzzzzzzzzzzE",
        "_ZN99core17h0123456789abcdefE",
        "_ZNSt6vectorIiE17h0123456789abcdefE",
        "_RIC1a" + "T" * 50,
    ],
)
def test_others_are_left_alone(mangled: str) -> None:
    assert demangle_rust(mangled) is None


def test_bombs_are_refused_soon() -> None:
    """Tuples of references to the tuple before: 2^60 characters if one believed it."""
    text = "_RINvC1a1bTuuE"
    previous = 7
    for _ in range(60):
        here = len(text) - 2
        digits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
        number, reference = previous - 1, ""
        while True:
            reference = digits[number % 62] + reference
            number //= 62
            if not number:
                break
        text += f"TB{reference}_B{reference}_E"
        previous = here
    before = time.monotonic()
    assert demangle_rust(text + "E") is None
    assert demangle_rust("_R" + "IS" * 100_000) is None
    assert demangle_rust("_RINvC1a1b" + "S" * 100_000 + "uE") is None
    assert time.monotonic() - before < 5


@given(st.text("RNvCMXYITBSAKELGFDpsuhe0123456789_abE", max_size=60))
def test_any_text_is_survived(tail: str) -> None:
    result = demangle_rust("_R" + tail)
    assert result is None or len(result) <= 8192


@pytest.mark.parametrize(
    ("name", "readable"),
    [
        ("_$LT$u8$u20$as$u20$core..clone..Clone$GT$::clone::h7bfab8630dda96cf", "<u8 as core::clone::Clone>::clone"),
        ("a::B$LT$T$GT$::new::_$u7b$$u7b$closure$u7d$$u7d$::ha2ed0674a1c3dc9f", "a::B<T>::new::{{closure}}"),
        ("core::fmt::write::h7bfab8630dda96cf", "core::fmt::write"),
        ("core::fmt::write::h7bfab8630dda96cf.llvm.1234", "core::fmt::write"),
        ("_$LT$$RF$T$u20$as$u20$a..B$GT$::c", "<&T as a::B>::c"),
        ("main", None),
        ("Foo$Bar::baz", None),
        ("a::h7bfab8630dda96cf::b", None),
        ("std::vector<int>::h123", None),
        ("", None),
    ],
)
def test_what_was_taken_for_cpp(name: str, readable: str | None) -> None:
    assert finish_rust(name) == readable
