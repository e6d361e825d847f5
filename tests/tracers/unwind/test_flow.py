from __future__ import annotations

from stallscope.tracers.unwind.flow import Code, Flow
from stallscope.tracers.unwind.frames import Instruction
from stallscope.tracers.unwind.jumptables import REACH


def test_jumps_far_from_what_is_known_count_as_much_code() -> None:
    number = 5_000

    def decode(at: int) -> Instruction | None:
        place, offset = divmod(at, REACH)
        if not 0 < place <= number:
            return None
        known = {0: (at, 2, "jne", hex(at + REACH)), 2: (at, 2, "jmp", "rax")}
        return known.get(offset)

    code = Code(decode, lambda _: False, lambda _: True, lambda _: True, lambda _, size: bytes(size))
    flow = Flow(code, REACH, most=4 * number)
    assert flow.problem == "too much code to read"
    assert len(flow.states) < number // 2
