from __future__ import annotations

import io
import os
import pty

import pytest
from stallscope.converters.model import Profile
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
    model_case,
    two_spinners_on_one_core,
    user,
)

MODEL = """\
84.2 % of the time of the 8 worker threads of demo is blocked in topk → cudaGetDeviceProperties → ioctl, waiting in \
__mutex_lock (8 processes, 31,200 waits, mean 2.16 ms, max 17.9 ms).
97.0 % of the time of the 8 main threads of demo is blocked in main → wait_for_worker → pthread_cond_wait, waiting in \
futex_wait (8 processes, 31,208 waits, mean 2.49 ms, max 18.0 ms).

Traced 8 × demo (pid 4711-4718): 16 threads for 10.0 s on node7

    Time    Share  of the wall time of all 16 threads
 14.40 s    9.0 %  on-CPU
  0.64 s    0.4 %  runnable: waiting for a core
144.96 s   90.6 %  blocked
 77.60 s   48.5 %    interruptible
 67.36 s   42.1 %    uninterruptible
160.00 s  100.0 %  wall

    Time   Share   Count     Mean      Max  Where (Share: of all threads' wall time)
 77.60 s  48.5 %  31,208  2.49 ms  18.0 ms  main → wait_for_worker → pthread_cond_wait │ futex_wait
                                            interruptible, 8 × demo (main), 97.0 % of their time
 67.36 s  42.1 %  31,200  2.16 ms  17.9 ms  topk → cudaGetDeviceProperties → ioctl │ __mutex_lock
                                            uninterruptible, 8 × demo/worker, 84.2 % of their time
  0.64 s   0.4 %  31,200  20.5 µs   900 µs  topk → cudaGetDeviceProperties → ioctl │ waiting for a core (woken)
                                            8 × demo/worker, 0.8 % of their time
145.60 s  91.0 %  93,608                    all 3 places
8 waits had not ended when the trace did: 80.0 ms, counted above up to then

Lost: 0 lost intervals, 3 stacks cut short
"""
MODEL_WAITS_AT_60 = """\
    Time   Share  Where (Share: of all threads' wall time)
 77.60 s  48.5 %  main → wait_for_worker → pthread_cond_wait
                  │ futex_wait
                  31,208 waits, mean 2.49 ms, max 18.0 ms
                  interruptible, 8 × demo (main), 97.0 % of
                  their time
 67.36 s  42.1 %  topk → cudaGetDeviceProperties → ioctl │
                  __mutex_lock
                  31,200 waits, mean 2.16 ms, max 17.9 ms
                  uninterruptible, 8 × demo/worker, 84.2 %
                  of their time
  0.64 s   0.4 %  topk → cudaGetDeviceProperties → ioctl │
                  waiting for a core (woken)
                  31,200 waits, mean 20.5 µs, max 900 µs
                  8 × demo/worker, 0.8 % of their time
145.60 s  91.0 %  all 3 places
"""
IDLE_WAITS = """\
    Time   Share  Count     Mean     Max  Where (Share: of all threads' wall time)
  6.00 s   0.9 %  1,000  6.00 ms  6.00 s  topk → cudaGetDeviceProperties → ioctl │ __mutex_lock
                                          uninterruptible, srv (main), 60.0 % of its time
  4.00 s   0.6 %  2,000  2.00 ms  4.00 s  pool_main → std::condition_variable::wait │ futex_wait
                                          interruptible, srv/pool-*, 40.0 % of its time
                                          idle, or waiting for others:
640.00 s  97.0 %     64   10.0 s  10.0 s  pool_main → std::condition_variable::wait │ futex_wait
                                          interruptible, 64 × srv/pool-*, 100.0 % of their time
650.00 s  98.5 %  3,064                   all 3 places
64 waits had not ended when the trace did: 10 min 40 s, counted above up to then
"""
SPINNERS = """\
50.0 % of the wall time of all 2 threads is on-CPU, 50.0 % is waiting for a core.

Traced spinner (pid 7): 2 threads for 10.0 s on node7

   Time    Share  of the wall time of all 2 threads
10.00 s   50.0 %  on-CPU
10.00 s   50.0 %  runnable: waiting for a core
 0.00 s    0.0 %  blocked
20.00 s  100.0 %  wall

   Time   Share  Count     Mean      Max  Where (Share: of all threads' wall time)
10.00 s  50.0 %  2,500  4.00 ms  4.00 ms  spin │ waiting for a core (preempted)
                                          spinner (main), spinner/spinner, 50.0 % of their time

Lost: 0 lost intervals, 0 stacks cut short
"""
EMPTY = """\
No thread was seen.

Traced nothing: 0 threads for 10.0 s on node7

Lost: 0 lost intervals, 0 stacks cut short
"""


def shown(profile: Profile, *, width: int | None = None, color: bool | None = None, top: int = 15) -> str:
    out = io.StringIO()
    render(summarize(profile), out, width=width, color=color, top=top)
    return out.getvalue()


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
    assert "Lost: 1 lost\\x07 events" in text
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
    assert "\n3.997 s  80.0 %  2,000                  all 1,000 places\n" in text


def test_rest_says_how_much_of_it_is_idle() -> None:
    assert "all 3 places" in shown(idle_pool(), top=1)
    assert "2 more places, 1 of them of idle threads\n" in shown(idle_pool(), top=1)


def column(lines: list[str]) -> list[float]:
    return [float(line.split()[0].replace(",", "")) for line in lines]


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
    times = column(blocks[2].splitlines()[1:])
    on_cpu, runnable, blocked, *states, wall = times
    assert sum(states) == pytest.approx(blocked, abs=1e-9)
    assert on_cpu + runnable + blocked == pytest.approx(wall, abs=1e-9)
    rows = [line for line in blocks[3].splitlines()[1:] if not line.startswith(" " * 30)]
    *waits, total = column(rows)
    assert sum(waits) == pytest.approx(total, abs=1e-9)
    assert total == pytest.approx(runnable + blocked, abs=1e-9)


def test_time_that_is_not_accounted_for_is_said() -> None:
    profile = two_spinners_on_one_core()
    profile.threads[0].wall += 500 * MS
    assert " 0.50 s    2.4 %  not accounted for\n" in shown(profile)
    profile.threads[0].wall -= SECOND
    assert "-0.50 s   -2.6 %  not accounted for\n" in shown(profile)


def test_without_thread_times_there_are_no_shares() -> None:
    profile = model_case()
    profile.threads.clear()
    text = shown(profile)
    assert "%" not in text.replace("Share: of", "")
    assert " 67.36 s      -  31,200  2.16 ms" in text


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
