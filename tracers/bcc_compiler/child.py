"""The process in which bcc compiles: run by path, with bcc's folder and the names of the programs. C comes on standard
input; the programs leave as JSON on standard output. It imports nothing of this project.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from typing import Any


def _import(folder: str) -> Any:
    path = os.path.join(folder, "__init__.py")
    spec = importlib.util.spec_from_file_location("bcc", path, submodule_search_locations=[folder])
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["bcc"] = module
    spec.loader.exec_module(module)
    return module


def compiled(folder: str, names: list[str], text: str) -> dict[str, Any]:
    """``version``, and ``programs`` in hexadecimal by name; else ``error``: its kind, and ``what``."""
    try:
        module = _import(folder)
    except Exception as error:  # whatever a broken installation raises
        return {"error": "import", "what": f"{type(error).__name__}: {error}"}
    version = str(getattr(module, "__version__", "of an unknown version"))
    try:
        made = module.BPF(text=text)
        programs = {name: bytes(made.dump_func(name.encode())).hex() for name in names}
    except Exception as error:  # bcc raises plain Exception
        return {"error": "compile", "version": version, "what": f"{type(error).__name__}: {error}"}
    return {"version": version, "programs": programs}


if __name__ == "__main__":
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what bcc itself prints is no result
    json.dump(compiled(sys.argv[1], sys.argv[2:], sys.stdin.read()), out)
    out.flush()
    os._exit(0)  # nothing is loaded that bcc would have to undo
