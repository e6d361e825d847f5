from __future__ import annotations

from stallscope.converters.model import states


def test_no_two_states_have_one_name() -> None:
    names = [*states.BLOCKED, *states.RUNNABLE_STATES, states.RUNNING, states.ENDED, states.UNKNOWN]
    assert len(set(names)) == len(names) == 11


def test_the_kernel_reports_blocked_states_by_letter() -> None:
    # The bits of "RSDTtXZPI" in fs/proc/array.c; running, dead and zombie are no waits.
    assert {letter: states.BY_LETTER[letter] for letter in "SDTtPI"} == {
        "S": "interruptible", "D": "uninterruptible", "T": "stopped", "t": "traced", "P": "other", "I": "idle",
    }  # fmt: skip
    assert set(states.BY_LETTER.values()) == set(states.BLOCKED)
    assert not {"R", "X", "Z"} & states.BY_LETTER.keys()


def test_runnable_states_begin_alike() -> None:
    assert all(state.startswith(states.RUNNABLE) for state in states.RUNNABLE_STATES)
    assert not any(state.startswith(states.RUNNABLE) for state in states.BLOCKED)


def test_the_kernel_reports_states_by_bit() -> None:
    """The bits are those of "RSDTtXZPI": each letter names what its bit does."""
    for place, letter in enumerate("SDTtXZPI"):
        state = states.BY_BITS[1 << place]
        assert state == (states.ENDED if letter in "XZ" else states.BY_LETTER[letter])
    assert states.BY_BITS[0] == states.BY_BITS[states.PREEMPTED_BIT] == states.PREEMPTED
