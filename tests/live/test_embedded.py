"""An interpreter that is part of a program whose name does not tell."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

from commands import load, run
from pythons import interpreters

PROGRAM = r"""
#include <Python.h>
int main(void) {
    Py_Initialize();
    PyRun_SimpleString("import time\ndef inside():\n    time.sleep(0.02)\nfor _ in range(100):\n    inside()\n");
    return Py_FinalizeEx();
}
"""
ASK = (
    "import json, sysconfig as s; "
    "print(json.dumps({n: s.get_config_var(n) for n in ('LIBPL', 'LIBRARY', 'LIBS', 'INCLUDEPY', 'LINKFORSHARED')}))"
)


def built(folder: Path, version: str, command: tuple[str, ...]) -> Path | None:
    """A program with this interpreter in it; None if the machine has not what that takes."""
    asked = subprocess.run([*command, "-c", ASK], capture_output=True, text=True, check=True)
    how = json.loads(asked.stdout)
    library = Path(how["LIBPL"] or "", how["LIBRARY"] or "")
    if tuple(map(int, version.split(".")[:2])) < (3, 11) or not library.is_file():
        return None
    source, target = folder / "simulator.c", folder / "simulator"
    source.write_text(PROGRAM)
    libraries = [*how["LIBS"].split(), *how["LINKFORSHARED"].split(), "-lm", "-ldl", "-lpthread"]
    linked = ["gcc", "-O1", f"-I{how['INCLUDEPY']}", "-o", target, source, library, *libraries]
    done = subprocess.run(linked, capture_output=True, check=False)
    return target if done.returncode == 0 else None


def test_functions_of_a_program_with_an_interpreter(
    live: None, tmp_path: Path, require: Callable[[bool, str], None], record_property: Callable[[str, object], None]
) -> None:
    programs = ((version, built(tmp_path, version, how)) for version, how in reversed(interpreters().items()))
    version, program = next((each for each in programs if each[1]), ("", None))
    record_property("version", version)
    require(program is not None, "there is no Python from 3.11 on that can be linked into a program")
    out = tmp_path / "x.pb.gz"
    run("-o", out, "--", program).check_succeeded()
    waits = [sample for sample in load(out).samples if sample.stack[-1].name == "__schedule"]
    inside = sum(s.values[0] for s in waits if any((f.name, f.kind) == ("inside", "python") for f in s.stack))
    assert inside > 90 * 20_000_000
