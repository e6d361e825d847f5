from __future__ import annotations

import io
import os
import pty
import re

import pytest
from stallscope.converters.model.remarks import FramesNameless
from stallscope.converters.summary.render import render
from stallscope.converters.summary.summarize import summarize
from summary_profiles import (
    EXE,
    MS,
    MUTEX,
    SECOND,
    Tracee,
    empty,
    hostile,
    idle_pool,
    kernel,
    many_places,
    model_case,
    two_spinners_on_one_core,
    user,
)
from summary_texts import shown

MODEL = """\
84.2 % of the time of the 8 worker threads of demo is blocked in topk → cudaGetDeviceProperties → ioctl, waiting in \
__mutex_lock (8 processes, 31,200 waits, mean 2.16 ms, max 17.9 ms); meanwhile the 8 main threads wait for other \
threads for 97.0 % of their time in main → wait_for_worker → pthread_cond_wait.

Traced 8 × demo (pid 4711-4718): 16 threads for 10.0 s on node7
Of 2 min 40 s: 9.0 % on a core, 0.4 % waiting for one, 90.6 % blocked (interruptible 48.5 %, uninterruptible 42.1 %)

   Time   Share   Count     Mean      Max  Where (Share: of all threads' time; after a name: of its own)
77.60 s  48.5 %  31,208  2.49 ms  18.0 ms  main → wait_for_worker → pthread_cond_wait │ futex_wait
                                           8 × demo (main) 97.0 %
67.36 s  42.1 %  31,200  2.16 ms  17.9 ms  topk → cudaGetDeviceProperties → ioctl │ __mutex_lock
                                           8 × demo/worker 84.2 %
 0.64 s   0.4 %  31,200  20.5 µs   900 µs  waiting for a core in topk → cudaGetDeviceProperties → ioctl
                                           8 × demo/worker 0.8 %

Nothing lost; 3 stacks cut short.
Next: trace-wakeup -n '^demo$' -d 5  # who ends these waits
"""
MODEL_WAITS_AT_60 = """\
                 Where (Share: of all threads' time; after a
   Time   Share  name: of its own)
77.60 s  48.5 %  main → wait_for_worker → pthread_cond_wait
                 │ futex_wait
                 8 × demo (main) 97.0 %, 31,208 × 2.49 ms,
                 max 18.0 ms
67.36 s  42.1 %  topk → cudaGetDeviceProperties → ioctl │
                 __mutex_lock
                 8 × demo/worker 84.2 %, 31,200 × 2.16 ms,
                 max 17.9 ms
 0.64 s   0.4 %  waiting for a core in topk →
                 cudaGetDeviceProperties → ioctl
                 8 × demo/worker 0.8 %, 31,200 × 20.5 µs,
                 max 900 µs
"""
IDLE_WAITS = """\
    Time   Share  Count     Mean     Max  Where (Share: of all threads' time; after a name: of its own)
  6.00 s   0.9 %  1,000  6.00 ms  6.00 s  topk → cudaGetDeviceProperties → ioctl │ __mutex_lock
                                          srv (main) 60.0 %
  4.00 s   0.6 %  2,000  2.00 ms  4.00 s  pool_main → std::condition_variable::wait │ futex_wait
                                          srv/pool-* 200 40.0 %
640.00 s  97.0 %     64   10.0 s  10.0 s  idle: pool_main → std::condition_variable::wait │ futex_wait
                                          64 × srv/pool-* 100.0 %
"""
SPINNERS = """\
50.0 % of the time of both threads of spinner is on a core, 50.0 % is waiting for one.

Traced spinner (pid 7): 2 threads for 10.0 s on node7
Of 20.0 s: 50.0 % on a core, 50.0 % waiting for one, 0.0 % blocked

  Time   Share  Count     Mean      Max  Where (Share: of all threads' time; after a name: of its own)
5.00 s  25.0 %  1,250  4.00 ms  4.00 ms  waiting for a core in spin
                                         spinner (main) 50.0 %
5.00 s  25.0 %  1,250  4.00 ms  4.00 ms  waiting for a core in spin
                                         spinner/spinner 50.0 %

Nothing lost.
Next: trace-wall -p 7 -d 5  # what runs on the cores, too
"""
EMPTY = """\
No thread was seen.

Traced nothing: 0 threads for 10.0 s on node7

Nothing lost.
"""


def test_model_case() -> None:
    assert shown(model_case()) == MODEL


def test_narrow_terminal_wraps_and_cuts_nothing() -> None:
    text = shown(model_case(), width=60)
    assert MODEL_WAITS_AT_60 in text
    assert max(map(len, text.splitlines())) <= 60


@pytest.mark.parametrize("width", [1, 20, 40, 80, 109, 110, 200])
def test_every_width_keeps_every_name(width: int) -> None:
    text = shown(model_case(), width=width)
    squeezed = "".join(text.split())
    assert "topk→cudaGetDeviceProperties→ioctl" in squeezed or width < 40
    assert max(map(len, text.splitlines())) <= width


def test_idle_pool_comes_last() -> None:
    assert IDLE_WAITS in shown(idle_pool())


def test_waiting_for_a_core_is_no_lock() -> None:
    assert shown(two_spinners_on_one_core()) == SPINNERS


def test_empty_profile() -> None:
    assert shown(empty()) == EMPTY


def test_hostile_names_are_inert() -> None:
    text = shown(hostile(), color=False)
    assert all(character.isprintable() or character == "\n" for character in text)
    assert '[bold]g\\u202e → quote"&amp;\\xff → ioctl │ __mutex_lock' in text
    assert 'Traced <script>alert(1)</script>;x\\x0a\\x1b]0;owned\\x07[red]"\\ (pid 1): 1 thread' in text
    assert "on node\\x1b[2J" in text
    assert "Lost: 1 lost\\x07 event." in text
    assert "Note: first\\x0asecond\\u202e" in text


def test_hostile_names_in_color_bring_no_escapes_of_their_own() -> None:
    text = shown(hostile(), color=True, width=100)
    assert "\x1b[" in text
    assert "\x1b[2J" not in text
    assert "\x1b]0" not in text
    assert "[bold]g" in text


def test_thousand_places_show_the_top_and_the_sum_of_the_rest() -> None:
    profile = empty()
    for i in range(1000):
        stack = (*user(EXE, "main", f"f{i}"), *MUTEX)
        time = SECOND if i < 3 else MS
        Tracee(profile, 1, "p", i + 1, "t").run(MS).wait(stack, "uninterruptible", time, 2)
    text = shown(profile, top=3)
    assert text.count(" │ ") == 3
    assert "\n0.997 s  20.0 %  1,994                  997 more places\n" in text


def test_rest_says_how_much_of_it_is_idle() -> None:
    assert "2 more places, 1 of them of idle threads\n" in shown(idle_pool(), top=1)


@pytest.mark.parametrize("seconds", [0.001234567, 1.3333333, 77.77777, 4321.987654])
def test_printed_numbers_add_up(seconds: float) -> None:
    profile = empty()
    for tid in range(1, 8):
        part = int(seconds * SECOND) // 7 + tid * 7
        tracee = Tracee(profile, 1, "p", tid, "t").run(part)
        for i in range(3):
            stack = (*user(EXE, f"f{tid % 3}{i}"), *MUTEX)
            tracee.wait(stack, ("uninterruptible", "interruptible", "stopped")[i], part // (i + 1))
        tracee.wait(stack, "runnable-woken", part // 5)
    blocks = shown(profile, top=5).split("\n\n")
    on_cpu, runnable, blocked, *states = [
        float(number) for number in re.findall(r"([\d.]+) %", blocks[1].splitlines()[1])
    ]
    assert sum(states) == pytest.approx(blocked, abs=1e-9)
    assert on_cpu + runnable + blocked == pytest.approx(100, abs=1e-9)
    rows = [line.split() for line in blocks[2].splitlines()[1:] if not line.startswith(" " * 30)]
    assert rows[-1][-2:] == ["more", "places"]
    shares = [float(row[row.index("%") - 1]) for row in rows]
    assert sum(shares) == pytest.approx(runnable + blocked, abs=1e-9)


def test_time_that_is_not_accounted_for_is_said() -> None:
    profile = two_spinners_on_one_core()
    profile.threads[0].wall += 500 * MS
    assert " 0.0 % blocked, 2.4 % not accounted for\n" in shown(profile)
    profile.threads[0].wall -= SECOND
    assert " 0.0 % blocked, -2.6 % not accounted for\n" in shown(profile)


def test_without_thread_times_there_are_no_shares() -> None:
    profile = model_case()
    profile.threads.clear()
    text = shown(profile)
    assert "%" not in text.replace("Share: of", "")
    assert "67.36 s      -  31,200  2.16 ms" in text


def test_many_process_names_are_summed_up() -> None:
    profile = empty()
    for pid in range(1, 60, 2):
        Tracee(profile, pid, f"p{pid % 12}" if pid > 40 else "same", pid, "t").run(1)
    text = shown(profile)
    assert "Traced 20 × same (pid 1, 3, 5, 7, 9, 11, 13, 15 …), 2 × p5" in text
    for pid in range(101, 120):
        Tracee(profile, pid, f"q{pid}", pid, "t").run(1)
    assert "18 processes of 18 other names: 49 threads" in shown(profile)


def test_nothing_counted_is_not_nothing_lost() -> None:
    profile = empty()
    profile.lost.clear()
    assert "Lost: unknown, nothing was counted\n" in shown(profile)


def test_kernel_thread_says_that_it_has_no_user_stack() -> None:
    profile = empty()
    Tracee(profile, 9, "jbd2", 9, "jbd2").wait(kernel("kthread", "kjournald2"), "uninterruptible", SECOND)
    assert "(no user stack) │ kjournald2\n" in shown(profile)


def test_file_that_knows_no_arrows_gets_ascii() -> None:
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding="ascii")
    profile = model_case()
    Tracee(profile, 1, "é", 1, "é").run(1)
    render(summarize(profile), out)
    out.flush()
    text = raw.getvalue().decode("ascii")
    assert "topk -> cudaGetDeviceProperties -> ioctl | __mutex_lock" in text
    assert "8 x demo" in text
    assert "20.5 us" in text
    assert "\\xe9 (pid 1)" in text


@pytest.mark.parametrize(
    ("environment", "colored"),
    [
        ({"TERM": "xterm"}, True),
        ({"TERM": "xterm", "NO_COLOR": "1"}, False),
        ({"TERM": "xterm", "NO_COLOR": ""}, True),
        ({"TERM": "dumb"}, False),
    ],
)
def test_color_on_a_terminal_only_and_not_with_no_color(
    environment: dict[str, str], colored: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    for key, value in environment.items():
        monkeypatch.setenv(key, value)
    primary, secondary = pty.openpty()
    with open(secondary, "w", encoding="utf-8") as terminal:
        render(summarize(two_spinners_on_one_core()), terminal)
    text = os.read(primary, 1 << 16).decode()
    os.close(primary)
    assert ("\x1b[" in text) is colored
    assert "waiting for a core" in text
    assert "\x1b" not in shown(two_spinners_on_one_core())


def test_every_main_thread_has_its_row() -> None:
    profile = many_places(3)
    for pid in (20, 21, 22):
        times = Tracee(profile, pid, f"small{pid % 2}", pid, "main").run(9 * SECOND)
        times.wait((*user(EXE, "seldom"), *kernel("ksys_read", "pipe_read")), "interruptible", 600 * MS, 3)
    text = shown(profile, top=4)
    assert "small0 (main)" in text
    assert "small1 (main)" in text


def test_threads_of_the_kernel_are_counted() -> None:
    profile = model_case()
    for pid in (90, 91):
        stack = kernel("ret_from_fork", "kthread", f"kernel_function_{pid}")
        Tracee(profile, pid, f"kworker/{pid}", pid, "kworker").wait(stack, "idle", 10 * SECOND)
    text = shown(profile)
    assert "kernel_function" not in text
    assert "2 threads of the kernel\n" in text
    assert "Traced 8 × demo (pid 4711-4718), 2 threads of the kernel: 18 threads for" in text


def test_only_threads_of_the_kernel_are_listed() -> None:
    profile = empty()
    Tracee(profile, 9, "jbd2", 9, "jbd2").wait(kernel("kthread", "kjournald2"), "uninterruptible", SECOND)
    assert "kjournald2" in shown(profile)


def test_losses_that_cost_time_come_first() -> None:
    profile = model_case()
    profile.lost = {"intervals": 3, "stacks": 0, "stacks not complete: no unwind rule": 2, "frames without a name": 5}
    assert "\nLost: 3 intervals; 2 stacks not complete: no unwind rule, 5 frames without a name.\n" in shown(profile)
    profile.comments.append(FramesNameless((("libx.so", 5),), 0))
    assert "\nLost: 3 intervals; 2 stacks not complete: no unwind rule.\n" in shown(profile)
