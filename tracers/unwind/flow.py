"""Follows the code of one function, along all jumps, to learn at each instruction where its caller's frame is.

This is for functions without call frame information. The result is refused if it contradicts itself: where paths meet
with different frames, or where a return is not at the depth of the entry. A function that is not understood has no
rules: none is better than a wrong one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from .frames import ENTRY, LOST, NOBODYS, SAME, Instruction, NotUnderstood, State, after, immediate, offset
from .jumptables import REACH, targets

_MAX_RESTARTS = 64
_BYTES_PER_STEP = 64
"""Bytes in which to look for instructions takes as long as to follow one."""
_NEVER_GOES_ON = frozenset({"hlt", "ud0", "ud1", "ud2", "int3"})


class Code(NamedTuple):
    """Code in which a function is followed."""

    decode: Callable[[int], Instruction | None]
    """The instruction at a virtual address; None where there is none that is to be followed."""
    is_entry: Callable[[int], bool]
    """Whether a function begins at an address."""
    returns: Callable[[int], bool]
    """Whether the function at an address may return."""
    returns_through: Callable[[int], bool]
    """Whether the function whose address is in the word at an address may return."""
    read: Callable[[int, int], bytes]
    """Constant data at a virtual address; b"" where there is none."""


class Flow:
    """The result: ``states`` by address, ``problem`` if the function is not understood."""

    def __init__(self, code: Code, entry: int, *, outermost: bool = False, most: int = 1 << 62) -> None:
        """``outermost``: the program begins here. ``most``: instructions that are followed at most."""
        self.entry = entry
        self.problem = ""
        self.states: dict[int, State] = {}
        self.sizes: dict[int, int] = {}
        self.calls: set[int] = set()
        """Functions that it calls."""
        self.tails: set[int] = set()
        """Functions that it jumps to instead of returning."""
        self.leaves = False
        """Whether it returns itself, or jumps somewhere unknown."""
        self.jumps_blindly = False
        """Whether it jumps somewhere unknown."""
        self.steps = 0
        """Instructions followed, to bound the time that it takes."""
        self._most = most
        self._code = code
        self._outermost = outermost
        self._final_calls: set[int] = set()
        """Calls that cannot have returned: what follows belongs to another frame."""
        for _ in range(_MAX_RESTARTS):
            try:
                self._follow()
            except _NotReturning as found:
                self._final_calls.add(found.call)
                continue
            except NotUnderstood as error:
                self.problem = str(error)
            return
        self.problem = "too many calls that do not return"

    def _follow(self) -> None:
        self.states, self.sizes = {}, {}
        self.calls, self.tails, self.leaves, self.jumps_blindly = set(), set(), False, False
        self._instructions: dict[int, Instruction] = {}
        self._system_called = False
        begin = ENTRY._replace(rbp=NOBODYS) if self._outermost else ENTRY
        todo: list[tuple[int, State, int]] = [(self.entry, begin, 0)]
        while todo:
            at, state, after_call = todo.pop()
            while True:
                known = self.states.get(at)
                state = state if known is None else self._joined(known, state, at, after_call)
                if known == state:
                    break
                if after_call and known is None and self._code.is_entry(at) and at != self.entry and state != ENTRY:
                    raise _NotReturning(after_call)
                instruction = self._code.decode(at)
                if instruction is None:
                    if after_call:
                        raise _NotReturning(after_call)
                    raise NotUnderstood("code that cannot be followed")
                self.steps += 1
                if self.steps > self._most:
                    raise NotUnderstood("too much code to read")
                self.states[at], self.sizes[at] = state, instruction[1]
                self._instructions[at] = instruction
                self._system_called |= instruction[2] == "syscall"
                then = after(instruction, state, system_called=self._system_called)
                jumps, goes_on = self._next(instruction, state)
                todo += [(target, then, 0) for target in jumps]
                if not goes_on:
                    break
                is_call = instruction[2] == "call"
                # What pads code behind a call that does not return is not part of the function.
                after_call = at if is_call else after_call if instruction[2] == "nop" else 0
                at, state = at + instruction[1], then
                if self._code.is_entry(at) and at != self.entry and state == ENTRY:
                    self.tails.add(at)  # it goes on as the next function
                    break
        self._check_overlaps()

    def _joined(self, known: State, new: State, at: int, after_call: int) -> State:
        if known == new:
            return known
        if NOBODYS in (known.rbp, new.rbp):
            raise NotUnderstood("paths with different frames")
        if known.depth != new.depth:
            same_frame = isinstance(known.rbp, int) and known.rbp == new.rbp
            if not same_frame:
                if after_call:
                    raise _NotReturning(after_call)
                before = self._call_before(at)
                if before:
                    raise _NotReturning(before)
                raise NotUnderstood("paths with different frames")
        rbp = known.rbp if known.rbp == new.rbp else LOST
        return State(
            known.depth if known.depth == new.depth else None, rbp, known.saved if known.saved == new.saved else None
        )

    def _call_before(self, at: int) -> int:
        """The call that the instruction at ``at`` follows, if no jump leads there from elsewhere in what is known."""
        for size in range(2, 8):
            found = self._instructions.get(at - size)
            if found and found[1] == size and found[2] == "call" and at - size not in self._final_calls:
                return at - size
        return 0

    def _next(self, instruction: Instruction, before: State) -> tuple[list[int], bool]:
        """(where it jumps, whether the next instruction is executed)."""
        _, _, mnemonic, operands = instruction
        if mnemonic in _NEVER_GOES_ON:
            return [], False
        if mnemonic == "call":
            return [], self._call(instruction)
        if mnemonic == "ret" or mnemonic.endswith(" ret"):
            _check_at_entry(before, "a return")
            if operands:
                raise NotUnderstood("a return that removes arguments")
            self.leaves = True
            return [], False
        if mnemonic.startswith(("j", "loop", "notrack jmp", "bnd jmp")):
            return self._jump(instruction, before), mnemonic not in ("jmp", "notrack jmp", "bnd jmp")
        return [], True

    def _call(self, instruction: Instruction) -> bool:
        """Whether it returns."""
        at, size, _, operands = instruction
        target = immediate(operands)
        slot = offset(operands, "qword ptr [rip")
        if slot is not None and not self._code.returns_through(at + size + slot):
            return False
        if target is not None and target != at + size:
            self.calls.add(target)
            if not self._code.returns(target):
                return False
        return at not in self._final_calls

    def _jump(self, instruction: Instruction, state: State) -> list[int]:
        """Addresses in this function to which a jump leads."""
        target = immediate(instruction[3])
        if target is None and "[rip " not in instruction[3]:
            return self._switch(instruction[0])
        if target is None:  # a function in another file
            self.leaves = True
        elif target != self.entry and self._code.is_entry(target):
            self.tails.add(target)
        elif self._code.decode(target) is None:  # described elsewhere
            self.leaves = True
        else:
            return [target]
        _check_at_entry(state, "a jump to another function")
        return []

    def _switch(self, at: int) -> list[int]:
        found = targets(self._before(at), self._code.read)
        if not found or any(self._code.decode(target) is None for target in found):
            self.leaves = self.jumps_blindly = True
            return []
        return found

    def _before(self, at: int) -> Iterator[Instruction]:
        """The instruction at ``at`` and those before it in memory, last first. Where few of them are known it takes
        time to find them, which counts as steps."""
        for address in range(at, at - REACH, -1):
            if address % _BYTES_PER_STEP == 0:
                self.steps += 1
            if found := self._instructions.get(address):
                yield found

    def _check_overlaps(self) -> None:
        """Code that can be read in two ways was misunderstood."""
        end = 0
        for at in sorted(self.sizes):
            if at < end:
                raise NotUnderstood("instructions that overlap")
            end = at + self.sizes[at]


class _NotReturning(Exception):
    """A call that cannot have returned."""

    def __init__(self, call: int) -> None:
        super().__init__()
        self.call = call


def _check_at_entry(state: State, what: str) -> None:
    if state.rbp != NOBODYS and (state.depth != ENTRY.depth or state.rbp != SAME):
        raise NotUnderstood(f"{what} from within a frame")
