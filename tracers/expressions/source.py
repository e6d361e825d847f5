"""C of the programs that answer questions: for each function, one for its entry and one for its return.

Our program judges the scope and calls them by a program array; they call ours, which times the call. What they count is
in maps, which they name by number: the loader puts the descriptors in.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from pathlib import Path

from .asked import Ask
from .c_expressions import expression, field_text
from .check import COMM, STRING
from .nodes import FieldText, Input, Node, Read, Saved, is_signed
from .plan import Part, Plan, is_text

PRINTS_PER_SECOND = 1000
"""Lines of --print; more are counted, not sent."""
_HELPERS = Path(__file__).with_name("helpers.h")
_LEAVE = "return 1;"
"""Statement at the end of a program: a call's return is of no interest; of a tracepoint, perf gets the event, too."""


class MapNumber(IntEnum):
    """Numbers that stand for descriptors of maps."""

    ANSWERS = 1
    LOSSES = 2
    SAVED = 3
    BLANK = 4
    PRINTS = 5
    RATE = 6
    RESUME = 7
    VALUES = 8
    CALLS = 9


class Loss(IntEnum):
    """Index into the map of losses."""

    FAULTS = 0
    """Calls whose --where could not be answered; they do not count."""
    VALUES = 1
    """Values that could not be read."""
    SAVES = 2
    """Calls whose arguments were not there when they returned."""
    ROOM = 3
    LIMITED = 4
    PRINTS = 5


class Resume(IntEnum):
    """Index into the program array with ours. Of an event there is only the first."""

    ENTER = 0
    RETURN = 1
    DROP = 2


def saved_places(plans: Sequence[Plan]) -> tuple[int, int]:
    """Number of numbers, and of strings, that struct saved has room for: all places, if one needs it."""
    places = max((len(plan.saved) for plan in plans), default=0)
    has_text = any(is_text(node) for plan in plans for node in plan.saved)
    return max(places, 1), max(places, 1) if has_text else 1


def saved_size(plans: Sequence[Plan]) -> int:
    """Bytes of struct saved."""
    numbers, texts = saved_places(plans)
    return 8 + 8 * numbers + STRING * texts


def names(index: int) -> tuple[str, str]:
    """Names of the programs for entry and return."""
    return f"q{index}_enter", f"q{index}_return"


def source(plans: Sequence[Plan], *, returns: bool = True) -> str:
    """The whole text. ``returns``: what is asked about has a return, and its program."""
    numbers, texts = saved_places(plans)
    defines = {
        **{f"MAP_{each.name}": each.value for each in MapNumber},
        **{f"LOST_{each.name}": each.value for each in Loss},
        **{f"RESUME_{each.name}": each.value for each in Resume},
        "SAVED_NUMBERS": numbers,
        "SAVED_TEXTS": texts,
        "TEXT_BYTES": STRING,
        "PRINTS_PER_SECOND": PRINTS_PER_SECOND,
    }
    parts = [f"#define {name} {value:d}" for name, value in defines.items()]
    parts.append(_HELPERS.read_text())
    for index, plan in enumerate(plans):
        enter, end = names(index)
        parts.append(_program(enter, _entry(plan, _LEAVE)))
        if returns:
            parts.append(_program(end, _return(plan)))
    return "\n".join(parts) + "\n"


def _program(name: str, lines: list[str]) -> str:
    body = "\n".join(f"\t{line}" for line in lines)
    return f"int {name}(struct pt_regs *ctx)\n{{\n\tu64 ids = bpf_get_current_pid_tgid(), fault = 0;\n{body}\n}}\n"


def _entry(plan: Plan, leave: str) -> list[str]:
    """``leave``: see `_LEAVE`."""
    lines = _where(plan.enter_where, leave)
    for part in plan.enter:
        lines += _answered(part)
    if plan.saved:
        lines += ["struct saved *saved = new_saved(ctx, ids);", "if (saved) {"]
        lines += [f"\t{line}" for place, node in enumerate(plan.saved) for line in _save(place, node)]
        lines += ["}"]
    # Reached behind it: the program is not there, and the call is not counted.
    return [*lines, "resume(ctx, RESUME_ENTER);", leave]


def _return(plan: Plan) -> list[str]:
    lines = []
    if plan.saved and plan.at_return:
        lines += ["struct saved *saved = old_saved(ctx, ids);", "if (!saved) {", "\tlose(LOST_SAVES);"]
        lines += [f"\tresume(ctx, {'RESUME_DROP' if plan.return_where else 'RESUME_RETURN'});", "\treturn 0;", "}"]
    drop = ["resume(ctx, RESUME_DROP);", "return 0;"]
    if plan.saved and plan.return_where is not None:
        drop = ["forget_saved(ctx, ids);", *drop]
    lines += _where(plan.return_where, " ".join(drop))
    answered = [line for part in plan.returns for line in _answered(part)]
    if plan.over and answered:
        answered = [f"if (call_duration(ids) > {plan.over:d}ULL) {{", *(f"\t{line}" for line in answered), "}"]
    lines += answered
    if plan.saved:
        lines += ["forget_saved(ctx, ids);"]
    return [*lines, "resume(ctx, RESUME_RETURN);", "return 0;"]


def _where(node: Node | None, leave: str) -> list[str]:
    if node is None:
        return []
    return [
        f"u64 matches = {expression(node)};",
        f"if (fault) {{ lose(LOST_FAULTS); {leave} }}",
        f"if (!matches) {{ {leave} }}",
    ]


def _answered(part: Part) -> list[str]:
    lines = ["fault = 0;"]
    if part.ask is Ask.PRINT:
        return lines + _printed(part)
    if part.ask is Ask.COUNT:
        return lines + _valued(part)
    (node,) = part.nodes
    lines += ["{", f"\tu64 value = {expression(node)};"]
    signed = "1" if is_signed(node) else "0"
    bucket = f"bucket_of(value, {signed})" if part.ask is Ask.HIST else "0"
    return [
        *lines,
        f"\tif (fault) lose(LOST_VALUES); else add(ctx, {part.number:d}, {bucket}, value);",
        "}",
    ]


def _valued(part: Part) -> list[str]:
    """Counts a value of its own."""
    (node,) = part.nodes
    lines = ["{", "\tstruct value_key key = {};", f"\tkey.question = {part.number:d};"]
    lines += ["\tkey.function = (u32)cookie_of(ctx);"]
    if is_text(node):
        lines += [f"\t{line}" for line in _text_into("key.text", node)]
    else:
        lines.append(f"\t*(u64 *)key.text = {expression(node)};")
    return [*lines, "\tif (fault) lose(LOST_VALUES); else add_value(ctx, &key);", "}"]


def _printed(part: Part) -> list[str]:
    """A record: struct printed, then 8 bytes for each number, and TEXT_BYTES for each string."""
    size = 32 + sum(STRING if is_text(node) else 8 for node in part.nodes)
    lines = ["if (may_print()) {", f"\tu8 *record = new_print(ctx, ids, {part.number:d}, {size:d});", "\tif (record) {"]
    at = 32
    for i, node in enumerate(part.nodes):
        if is_text(node):
            lines += [f"\t\t{line}" for line in _text_into(f"record + {at:d}", node)]
            at += STRING
        else:
            lines.append(f"\t\t*(u64 *)(record + {at:d}) = {expression(node)};")
            at += 8
        lines += [f"\t\tif (fault) *(u32 *)(record + 24) |= {1 << i:d};", "\t\tfault = 0;"]
    return [*lines, "\t\tbpf_ringbuf_submit(record, 0);", "\t}", "}"]


def _text_into(where: str, node: Node) -> list[str]:
    lines = [f"clear_text({where});"]
    if isinstance(node, Input):
        return [*lines, f"bpf_get_current_comm({where}, {COMM:d});"]
    if isinstance(node, FieldText):
        return [*lines, field_text(where, STRING, node)]
    if isinstance(node, Read):
        size = min(node.type.bytes if hasattr(node.type, "bytes") else STRING, STRING)
        return [
            *lines,
            f"if (bpf_probe_read_user_str({where}, {size:d}, (void *){expression(node.address)}) < 0) fault = 1;",
        ]
    assert isinstance(node, Saved)
    return [*lines, f"copy_text({where}, saved, {node.place:d}, &fault);"]


def _save(place: int, node: Node) -> list[str]:
    lines = ["fault = 0;"]
    if is_text(node):
        lines += _text_into(f"(u8 *)saved->texts[{place:d}]", node)
    else:
        lines.append(f"saved->numbers[{place:d}] = {expression(node)};")
    return [*lines, f"if (fault) saved->faults |= {1 << place:d}ULL;"]
