"""All targets, by name."""

from __future__ import annotations

import fuzz_files
import fuzz_memory
import fuzz_texts
from fuzz_target import Target

TARGETS: dict[str, Target] = {
    target.name: target for target in (*fuzz_files.TARGETS, *fuzz_texts.TARGETS, *fuzz_memory.TARGETS)
}
