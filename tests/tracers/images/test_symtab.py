from __future__ import annotations

import os
import subprocess
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from stallscope.tracers.images.elf import ElfFile, FileSource
from stallscope.tracers.images.symtab import Bounds, SymbolTable, better_name
from stallscope.tracers.unwind.functions import function_bounds

ASSEMBLY = r"""
.text
.globl sized, nosize, label_in_the_middle
.type sized, @function
sized: nop; nop; nop; nop
.size sized, 4
.byte 0xcc, 0xcc, 0xcc, 0xcc
.type nosize, @function
nosize: nop; nop
middle_label: nop; nop
.type inside, @function
outer: .type outer, @function
nop; nop
inside: nop; nop
nop; nop
.size outer, 6
.byte 0xcc, 0xcc
.type last, @function
last: nop; nop; nop; ret
.section .text.other,"ax",@progbits
.byte 0xcc, 0xcc, 0xcc, 0xcc
.globl with_label
.type with_label, @function
with_label: nop; nop
.data
.globl data_function
.type data_function, @function
data_function: .quad 1
.size data_function, 8
"""

ALIASES = r"""
.text
.globl target, __target, _longer_target
.weak weak_target
.type target, @function
.type __target, @function
.type weak_target, @function
.type _longer_target, @function
.type tg, @function
tg:
target:
__target:
weak_target:
_longer_target:
nop; nop; nop; nop
.size target, 4
.size __target, 4
.size weak_target, 4
.size _longer_target, 4
.size tg, 4
.globl outer, inner
.type outer, @function
outer: nop; nop
.type inner, @function
inner: nop; nop
.size inner, 2
nop; nop
.size outer, 6
.skip 16, 0xcc
"""


NmSymbol = tuple[int, int, str, str]
Nm = Callable[..., list[NmSymbol]]


def table_of(path: Path) -> SymbolTable:
    elf = ElfFile(FileSource(os.open(path, os.O_RDONLY)))
    return SymbolTable([elf], lambda: Bounds(*function_bounds(elf)))


def find(table: SymbolTable, *addresses: int) -> list[str | None]:
    return table.find(np.array(addresses, np.uint64))


def covering(symbols: list[NmSymbol], addresses: list[int]) -> dict[int, set[str]]:
    """The names of sized symbols that cover each address, the slow and certain way."""
    result: dict[int, set[str]] = defaultdict(set)
    wanted = np.array(sorted(addresses))
    for value, size, _, name in symbols:
        low, high = np.searchsorted(wanted, [value, value + size])
        for address in wanted[low:high].tolist():
            result[address].add(name)
    return result


def check_against_nm(table: SymbolTable, symbols: list[NmSymbol]) -> int:
    """Start, middle and last byte of each symbol have a name that nm lists there; what nm lists not has none."""
    sized = [s for s in symbols if s[1]]
    sizeless = sorted(value for value, size, *_ in symbols if not size)
    inside = {a for value, size, *_ in sized for a in (value, value + size // 2, value + size - 1)}
    behind = {value + size for value, size, *_ in sized}
    addresses = sorted(inside | behind)
    truth = covering(sized, addresses)
    nothing = 0
    for address, name in zip(addresses, find(table, *addresses), strict=True):
        if truth[address]:
            assert name in truth[address], hex(address)
        elif name is not None:
            # Only a symbol without size, which begins before and ends where any other begins.
            assert any(v <= address and n == name for v, s, _, n in symbols if not s), (hex(address), name)
            start = max(v for v in sizeless if v <= address)
            assert not any(start < v <= address for v, *_ in symbols), (hex(address), name)
        else:
            nothing += 1
    return nothing


def test_every_function_of_libc_and_one_byte_behind(nm: Nm) -> None:
    libc = Path(subprocess.run(["gcc", "-print-file-name=libc.so.6"], capture_output=True, text=True).stdout.strip())
    symbols = nm(libc, "-D", "--defined-only")
    assert len(symbols) > 1500
    assert check_against_nm(table_of(libc), symbols) > 100


def test_every_function_of_a_static_program(static_program: Path, nm: Nm) -> None:
    symbols = nm(static_program)
    assert len(symbols) > 1000
    assert check_against_nm(table_of(static_program), symbols) > 50


def test_cpp_program(compile_program: Callable[..., Path], nm: Nm) -> None:
    source = "#include <iostream>\n#include <map>\nint main() { std::map<int, std::string> m; std::cout << m[1]; }"
    path = compile_program(source, suffix=".cc", compiler="g++")
    symbols = nm(path)
    assert any(name.startswith("_ZNSt") for *_, name in symbols)
    check_against_nm(table_of(path), symbols)


def test_symbols_without_size_are_bounded(compile_program: Callable[..., Path], nm: Nm) -> None:
    path = compile_program("int main(void) { return 0; }\n__asm__(" + quoted(ASSEMBLY) + ");")
    at = {name: value for value, _, _, name in nm(path)}
    table = table_of(path)
    sized, nosize = at["sized"], at["nosize"]
    assert find(table, sized, sized + 3, sized + 4, nosize - 1) == ["sized", "sized", None, None]
    # Up to any label; a label alone names nothing.
    assert find(table, nosize, nosize + 1, nosize + 2, nosize + 3) == ["nosize", "nosize", None, None]
    # Inside a sized one the sized one holds, and its end is an end.
    outer = at["outer"]
    assert find(table, *range(outer, outer + 8)) == ["outer"] * 6 + [None] * 2
    assert find(table, at["last"], at["last"] + 3)[0] == "last"
    # Never into another section, never data.
    other = at["with_label"]
    assert find(table, other - 1, other, other + 1)[1:] == ["with_label", "with_label"]
    assert find(table, other - 1) != ["with_label"]
    lines = subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout.splitlines()
    (data,) = [int(line.split()[0], 16) for line in lines if line.endswith("data_function")]
    assert find(table, data) == [None]


def test_sizeless_symbols_of_a_stripped_program_are_not_believed(compile_program: Callable[..., Path], nm: Nm) -> None:
    source = "int main(void) { return 0; }\n__asm__(" + quoted(ASSEMBLY) + ");"
    library = compile_program(source, "-shared", "-fPIC")
    at = {name: value for value, _, _, name in nm(library, "-D")}
    subprocess.run(["strip", library], check=True)
    assert find(table_of(library), at["nosize"], at["sized"]) == [None, "sized"]
    without_locals = compile_program(source, "-Wl,-x")
    subprocess.run(["strip", "-x", without_locals], check=True)
    at = {name: value for value, _, _, name in nm(without_locals)}
    assert find(table_of(without_locals), at["nosize"], at["sized"]) == [None, "sized"]


def test_aliases_and_nested_symbols(compile_program: Callable[..., Path], nm: Nm) -> None:
    path = compile_program("int main(void) { return 0; }\n__asm__(" + quoted(ALIASES) + ");")
    at = {name: value for value, _, _, name in nm(path)}
    table = table_of(path)
    assert find(table, at["tg"], at["tg"] + 3) == ["target", "target"]
    assert find(table, *range(at["outer"], at["outer"] + 7)) == [*["outer"] * 2, *["inner"] * 2, *["outer"] * 2, None]


def test_many_nested_symbols_end_soon(compile_program: Callable[..., Path], nm: Nm) -> None:
    """One large function with thousands of small ones in it: the walk outwards is bounded, its result is right."""
    lines = [".text", ".globl around", ".type around, @function", "around:"]
    for i in range(5000):
        lines += [f".globl s{i}", f".type s{i}, @function", f"s{i}: nop", f".size s{i}, 1"]
    lines += [".skip 4096, 0x90", ".size around, 9096", ".skip 16, 0xcc"]
    path = compile_program("int main(void) { return 0; }\n__asm__(" + quoted("\n".join(lines)) + ");")
    around = next(value for value, _, _, name in nm(path) if name == "around")
    asked = [around, around + 4999, around + 5000, around + 9095, around + 9096]
    assert find(table_of(path), *asked) == ["s0", "s4999", "around", "around", None]


@pytest.mark.parametrize(
    ("names", "best"),
    [
        ([("__write", 0, 1), ("write", 0, 1), ("__GI___write", 1, 0), ("__libc_write", 1, 0)], "write"),
        ([("_IO_puts", 0, 0), ("puts", 0, 1)], "puts"),
        ([("__libc_malloc", 0, 0), ("malloc", 0, 0)], "malloc"),
        ([("f.localalias", 1, 0), ("function", 0, 0)], "function"),
        ([("_ZN1AC2Ev", 0, 1), ("_ZN1AC1Ev", 0, 1)], "_ZN1AC1Ev"),
        ([("_ZN1A1fEv", 0, 0), ("longer_plain_name", 0, 0)], "_ZN1A1fEv"),
        ([("strong_one", 0, 0), ("weak", 0, 1)], "strong_one"),
    ],
)
def test_preference(names: list[tuple[str, int, int]], best: str) -> None:
    keys = [better_name(name, local=bool(local), weak=bool(weak)) for name, local, weak in names]
    assert min(keys)[-1] == best
    assert min(reversed(keys))[-1] == best


def test_versions_are_stripped(compile_program: Callable[..., Path], tmp_path: Path, nm: Nm) -> None:
    versions = tmp_path / "map"
    versions.write_text("V1 { global: old; }; V2 { global: new; } V1;")
    source = '__asm__(".symver _impl, same@V1"); int _impl(void) { return 1; }\nint old(void) { return 2; }'
    path = compile_program(source, "-shared", "-fPIC", f"-Wl,--version-script={versions}")
    at = {name: value for value, _, _, name in nm(path)}
    assert find(table_of(path), at["same"]) == ["same"]


def test_default_and_old_versions_of_one_function(compile_program: Callable[..., Path], tmp_path: Path, nm: Nm) -> None:
    versions = tmp_path / "map"
    versions.write_text("V1 { global: same; }; V2 { global: same; } V1;")
    source = """
    int old_one(void) { return 1; }
    int new_one(void) { return 2; }
    __asm__(".symver old_one, same@V1");
    __asm__(".symver new_one, same@@V2");
    """
    path = compile_program(source, "-shared", "-fPIC", f"-Wl,--version-script={versions}")
    at = {name: value for value, _, _, name in nm(path)}
    subprocess.run(["strip", path], check=True)
    assert at["old_one"] != at["new_one"]
    assert find(table_of(path), at["old_one"], at["new_one"]) == ["same", "same"]


IFUNC = r"""
int chosen_impl(void) { return 1; }
static void *resolve(void) { return chosen_impl; }
int chosen(void) __attribute__((ifunc("resolve")));
int main(void) { return chosen(); }
"""


def test_an_ifunc_names_its_resolver_and_not_what_it_chose(compile_program: Callable[..., Path], nm: Nm) -> None:
    path = compile_program(IFUNC)
    symbols = {name: (value, size, letter) for value, size, letter, name in nm(path)}
    assert symbols["chosen"][2] == "i"
    resolver, size = symbols["chosen"][:2]
    assert find(table_of(path), resolver, resolver + size - 1) == ["chosen", "chosen"]
    assert find(table_of(path), symbols["chosen_impl"][0]) == ["chosen_impl"]


def test_never_the_nearest_name(compile_program: Callable[..., Path], nm: Nm) -> None:
    """Code is named better than by tools that take the symbol before an address, whatever its size: every byte of the
    code that no function's symbol covers has no name, and what a hidden function covers never has its exported
    neighbour's."""
    source = """
    __attribute__((visibility("hidden"), noinline)) int hidden_1(int x) { return x * 3; }
    int exported_1(int x) { return hidden_1(x) + 1; }
    static __attribute__((noinline)) int hidden_2(int x) { return x * 5; }
    int exported_2(int x) { return hidden_2(x) + 2; }
    """
    library = compile_program(source + "__asm__(" + quoted(ASSEMBLY + ".text\n") + ");", "-shared", "-fPIC")
    symbols = nm(library)
    hidden = covering(
        symbols, [v + i for v, size, _, name in symbols for i in range(size) if name.startswith("hidden")]
    )
    assert len(hidden) > 5
    subprocess.run(["strip", library], check=True)
    table = table_of(library)
    exported = nm(library, "-D")
    assert not set(find(table, *hidden)) & {"exported_1", "exported_2"}
    assert find(table, *hidden) == [None] * len(hidden)
    end = max(value + size for value, size, *_ in symbols) + 64
    covered = covering(exported, list(range(end)))
    assert {a for a, name in enumerate(find(table, *range(end))) if name} == {
        a for a, names in covered.items() if names
    }


def test_the_end_of_a_description_bounds_a_symbol_without_size(compile_program: Callable[..., Path], nm: Nm) -> None:
    """Code behind it was described by nobody: it is nobody's."""
    assembly = ".text\n.type nosize, @function\nnosize:\n.cfi_startproc\nnop; ret\n.cfi_endproc\nnop; nop; ret\n"
    path = compile_program("int main(void) { return 0; }\n__asm__(" + quoted(assembly) + ");")
    nosize = next(value for value, _, _, name in nm(path) if name == "nosize")
    assert find(table_of(path), nosize, nosize + 1, nosize + 2, nosize + 4) == ["nosize", "nosize", None, None]


def test_bounds() -> None:
    bounds = Bounds(np.array([10, 20, 40], np.uint64), np.array([20, 30, 41], np.uint64))
    asked = np.array([0, 9, 10, 19, 20, 29, 30, 39, 40, 41, 2**64 - 1], np.uint64)
    assert bounds.holding(asked).tolist() == [-1, -1, 0, 0, 1, 1, -1, -1, 2, -1, -1]
    assert Bounds.none().holding(asked).tolist() == [-1] * 11


def quoted(assembly: str) -> str:
    return "".join('"' + line.replace('"', '\\"') + '\\n"' for line in assembly.splitlines())


def test_absurd_sizes_end_with_the_section(compile_program: Callable[..., Path], nm: Nm) -> None:
    assembly = '.section .first,"ax",@progbits\n.globl liar\n.type liar, @function\nliar: nop\n.size liar, 0x7fffffff\n'
    assembly += '.section .second,"ax",@progbits\n.skip 64, 0xcc\n.text\n'
    path = compile_program("int main(void) { return 0; }\n__asm__(" + quoted(assembly) + ");")
    at = {name: value for value, _, _, name in nm(path)}
    table = table_of(path)
    assert find(table, at["liar"]) == ["liar"]
    assert "liar" not in find(table, *range(at["liar"] + 1, at["liar"] + 64))


def test_a_nameless_function_bounds_one_without_size(compile_program: Callable[..., Path], nm: Nm) -> None:
    """The function behind it has no symbol any more, but unwinding information."""
    assembly = ".text\n.type nosize, @function\nnosize: nop; nop\n.cfi_startproc\nnop; nop; ret\n.cfi_endproc\n"
    path = compile_program("int main(void) { return 0; }\n__asm__(" + quoted(assembly) + ");")
    nosize = next(value for value, _, _, name in nm(path) if name == "nosize")
    assert find(table_of(path), nosize, nosize + 1, nosize + 2) == ["nosize", "nosize", None]


TWINS = r"""
.text
.globl only, longer_only
.type only, @function
only: nop; nop; nop; nop
.size only, 2
.type longer_only, @function
longer_only: nop
.size longer_only, 1
.type twin, @function
twin: nop; nop
.size twin, 2
.type sizeless, @function
sizeless: nop
"""
OTHER_TWIN = r"""
.text
.type twin, @function
twin: nop
.size twin, 1
.globl last
.type last, @function
last: nop
.size last, 1
"""


def test_symbols_by_name(tmp_path: Path) -> None:
    objects = []
    for name, text in (("a", TWINS), ("b", OTHER_TWIN)):
        (tmp_path / f"{name}.s").write_text(text)
        objects.append(tmp_path / f"{name}.o")
        subprocess.run(["as", "-o", objects[-1], tmp_path / f"{name}.s"], check=True)
    library = tmp_path / "twins.so"
    subprocess.run(["ld", "-shared", "-o", library, *objects], check=True)
    elf = ElfFile(FileSource(os.open(library, os.O_RDONLY)))
    found = SymbolTable([elf], Bounds.none).named(
        ["only", "twin", "sizeless", "last", "nly", "none", "", "a\nb", "\udcff"]
    )
    assert set(found) == {"only", "twin", "sizeless", "last"}
    ((start, end, after),) = found["only"]  # it is in both tables of symbols
    assert (end - start, after - start) == (2, 4), "the size that it has, and the distance to the next one"
    assert sorted(each.end - each.start for each in found["twin"]) == [1, 2]
    (sizeless,) = found["sizeless"]
    assert sizeless.start == sizeless.end < sizeless.next
    assert found["last"][0].next == 0
