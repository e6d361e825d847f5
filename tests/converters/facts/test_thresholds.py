"""Each threshold is pinned from both sides: a little below it another verdict is found than a little above it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import blame_pins
import call_pins as calls
import compare_pins
import connection_pins
import core_pins
import fact_pins
import host_pins
import limit_pins as limits
import period_pins as periods
import pins
import pytest
import row_pins
import said_pins as said
import slice_pins
from file_lock_profiles import SEEN
from job_profiles import job
from lock_profiles import lock
from stallscope.converters.facts import thresholds
from stallscope.converters.facts.file_locks import file_holder
from stallscope.converters.facts.threshold_types import Limit, Threshold
from stallscope.converters.model import Profile
from stallscope.converters.rules import gil_main, processes_anew, reclaim, straggler, turns
from stallscope.converters.rules.ranking import judge
from stallscope.converters.summary.locks_table import shown_locks
from summary_profiles import MS, POLL, READ, SECOND, SLEEP, SPIN, facts_of, waiting
from verdict_profiles import (
    COMPUTE,
    FSYNC,
    SWAP_IN,
    blocked,
    handing_on,
    held_by_gil,
    herd,
    one,
    sampled,
    starting,
    taking_turns,
    whole_host,
    with_quota,
    workers,
    yielding,
)

TEN = 10 * SECOND


def take_turns(threads: int = 4, used: float = 1.0, **given: float) -> bool:
    return bool(turns.find(facts_of(taking_turns(threads, used, **given))))


def is_late(made: Profile) -> bool:
    return bool(straggler.find(facts_of(made)))


def gets_memory(of_hundred: int) -> bool:
    return bool(reclaim.find(facts_of(sampled(SWAP_IN, COMPUTE, samples=(of_hundred, 100 - of_hundred)))))


def had_always(looks: float) -> bool:
    """Whether a lock on a file that was had at so many looks was always had."""
    found = file_holder([replace(SEEN, seen=round(looks), looks=round(looks))], (1,), (1,), 1)
    return found is not None and found.always


class Pin(NamedTuple):
    """A value below the threshold, one above (or both, where it is a number of things), and what is found of either."""

    below: float
    above: float
    found: Callable[[float], object]


def are_near(waits: int, difference: float) -> bool:
    """A main thread's waits, and a quota's stops, which save less by this share."""
    profile = with_quota(one(FSYNC, TEN, runs=MS, state="uninterruptible", count=waits), round(TEN * (1 - difference)))
    return judge(facts_of(profile)).is_equal


PINS: dict[str, tuple[Pin, ...]] = {
    "PASSES_ON": (Pin(0.019, 0.021, fact_pins.passes_on),),
    "ROUGH": (Pin(0.0195, 0.0205, fact_pins.is_rough),),
    "FEW_SAMPLES": (
        Pin(9, 10, fact_pins.are_enough),
        Pin(9, 10, lambda x: said.runs_in_step(0.9, round(x))),
        Pin(9, 10, said.are_enough_of_threads),
    ),
    "SIGNIFICANT": (
        Pin(0.049, 0.051, pins.held_up_for),
        Pin(0.049, 0.051, pins.held_up_beside_others),
        Pin(0.049, 0.051, pins.waits_for_others),
        Pin(0.049, 0.051, pins.is_busy),
        Pin(0.049, 0.051, pins.works_beside),
        Pin(0.049, 0.051, pins.busy_beside),
        Pin(0.049, 0.051, blame_pins.matters_for_waits),
    ),
    "TELLING": (Pin(0.098, 0.102, pins.places_told),),
    "WORTH": (Pin(0.098, 0.102, lambda x: pins.is_second(with_quota(blocked(TEN, MS), round(x * TEN)))),),
    "WORTH_RUNNING": (Pin(0.39, 0.41, lambda x: pins.is_second(blocked(TEN, round(x * TEN)))),),
    "MOSTLY": (
        Pin(0.49, 0.51, said.waits_for_cores),
        Pin(0.49, 0.51, said.works_for_main),
        Pin(0.49, 0.51, said.needed_by_main),
        Pin(0.49, 0.51, said.serves),
        Pin(0.49, 0.51, said.waits_elsewhere),
        Pin(0.49, 0.51, said.waits_for_its_runtime),
        Pin(0.49, 0.51, lambda x: calls.fail(1_000 * x, 1_000)),
    ),
    "ON_ONE": (Pin(0.79, 0.81, fact_pins.is_on_one), Pin(0.79, 0.81, fact_pins.is_on_several)),
    "ON_ONE_PEER": (Pin(0.79, 0.81, fact_pins.is_for_one_peer),),
    "DISK_LIMIT_REACHED": (Pin(0.79, 0.81, fact_pins.is_held_back),),
    "NOISE_LEAST": (Pin(0.0190, 0.0205, lambda x: are_near(10**6, math.sqrt(2) * x)),),
    "NOISE_MOST": (Pin(0.099, 0.103, lambda x: are_near(1, x)),),
    "UNCLEAR": (Pin(0.49, 0.51, pins.is_unclear),),
    "AT_WORK_SWITCHES": (Pin(4.8, 5, lambda x: pins.are_at_work(0.0001, round(10 * x))),),
    "AT_WORK_CPU": (Pin(0.0049, 0.0051, pins.are_at_work),),
    "SLIGHT": (Pin(0.019, 0.021, lambda x: pins.confidence(whole_host(one(READ, 9 * SECOND, runs=round(x * TEN))))),),
    "IDLE_CPU": (Pin(0.0099, 0.0101, pins.hardly_runs),),
    "TRACER_TOLD": (Pin(0.049, 0.051, said.tracer_is_told),),
    "CALM_CORES": (Pin(0.049, 0.051, pins.has_nothing_to_do),),
    "QUIET": (Pin(0.989, 0.991, fact_pins.is_quiet), Pin(0.989, 0.991, fact_pins.is_quiet_but_for_a_core)),
    "QUIET_BESIDE": (Pin(0.949, 0.951, fact_pins.is_quiet_beside),),
    "GETS_ON": (Pin(0.0009, 0.0011, fact_pins.gets_on), Pin(0.0009, 0.0011, fact_pins.parked_beside)),
    "ONE_WAIT": (Pin(0.949, 0.951, fact_pins.only_waits),),
    "ENDS_ALIKE": (Pin(0.949, 0.951, fact_pins.ends_alike), Pin(0.945, 0.955, core_pins.fed_apart)),
    "INTERVAL_WAITS": (Pin(2, 3, fact_pins.has_interval),),
    "STEADY": (Pin(1.45, 1.55, fact_pins.is_steady), Pin(1.45, 1.55, fact_pins.is_steady_but_once)),
    "FROM_ANCESTORS": (Pin(0.89, 0.91, lambda x: fact_pins.is_for_work(fact_pins.pool(part=x))),),
    "NEEDED": (Pin(0.049, 0.051, fact_pins.is_needed),),
    "RELATED_NAMES": (Pin(6, 7, pins.related),),
    "ALL_WAIT_THREADS": (Pin(1, 2, fact_pins.wait_for_each_other),),
    "CAUSE": (
        Pin(0.195, 0.205, pins.occupied),
        Pin(0.195, 0.205, pins.occupied_while),
        Pin(0.195, 0.205, pins.comes_last),
    ),
    "LATE_TIMES": (Pin(1.95, 2.05, lambda x: pins.comes_last(x * 0.2, longest=0.2, least=0.7)),),
    "LATE_WAITS": (Pin(0.33, 0.34, lambda x: pins.comes_last(0.5, waits=0.9 * x)),),
    "PEER_RUNS": (Pin(0.19, 0.21, core_pins.peer_that_uses),),
    "PEER_HARDLY_RUNS": (Pin(0.019, 0.021, core_pins.peer_that_uses),),
    "BOTH_WAIT": (Pin(0.49, 0.51, host_pins.both_wait),),
    "BLAMED": (Pin(0.29, 0.31, blame_pins.ends),),
    "DOES_MOSTLY": (Pin(0.49, 0.51, blame_pins.runs_for),),
    "BLOCKED_ITSELF": (Pin(0.79, 0.81, blame_pins.blocked_itself),),
    "HELD_MATTERS": (Pin(0.199, 0.201, lambda x: blame_pins.has_it(10 * x, 10 * x)),),
    "HELD_MOSTLY": (Pin(0.49, 0.51, lambda x: blame_pins.has_it(4, 4 * x)),),
    "ASKS_AS_OFTEN": (Pin(0.79, 0.81, fact_pins.asks_as_often), Pin(0.79, 0.81, fact_pins.sleeps_as_often)),
    "ASKS_LEAST": (Pin(3, 4, fact_pins.asks_enough),),
    "LOOKS": (Pin(1, 2, had_always),),
    "HOLDER_SHARE": (Pin(0.099, 0.101, blame_pins.having),),
    "CONVOY_TIME": (Pin(99_000_000, 101_000_000, lambda x: fact_pins.is_in_convoy(x, 50)),),
    "CONVOY_WAITS": (Pin(19, 20, lambda x: fact_pins.is_in_convoy(SECOND, x)),),
    "HERD_THREADS": (Pin(7, 8, lambda x: pins.is_herd(herd(round(x)))),),
    "HERD_RUNS": (Pin(19_900, 20_100, lambda x: pins.is_herd(herd(runs=x))),),
    "HERD_WAKEUPS": (Pin(99, 100, lambda x: pins.is_herd(herd(often=x))),),
    "HERD_ALIKE": (Pin(0.66, 0.67, lambda x: pins.is_herd(herd(last=x))),),
    "CROWDED": (Pin(1.19, 1.21, lambda x: core_pins.is_crowd(8, cores=2, waits=4 * x - 2)),),
    "HANDS_ON_WANTED": (Pin(4.9, 5.6, lambda x: judge(facts_of(handing_on(number=round(x / 0.7)))).verdicts[0].rule),),
    "HANDS_ON": (Pin(99_000, 101_000, lambda x: judge(facts_of(handing_on(round(x)))).verdicts[0].rule),),
    "CROWD_WAITS": (Pin(0.195, 0.205, lambda x: core_pins.is_crowd(8, cores=8 * (1 - x), waits=8 * x)),),
    "CROWD_CORE": (
        Pin(0.049, 0.051, lambda x: core_pins.is_crowd(2, cores=0.15, waits=x)),
        Pin(0.049, 0.051, core_pins.takers),
    ),
    "TEAM": (Pin(1, 2, core_pins.is_team),),
    "FED_OFTEN": (Pin(1, 2, core_pins.is_fed),),
    "CROWD_MEMBER": (Pin(0.049, 0.051, core_pins.members), Pin(0.049, 0.051, core_pins.is_pool_member)),
    "MATTERS_FOR_HOST": (Pin(0.0195, 0.0205, core_pins.matters_for_host),),
    "POOLS_WANT": (Pin(1.45, 1.55, core_pins.is_hint),),
    "CORES_TAKEN": (Pin(0.59, 0.61, core_pins.others_have_cores),),
    "OTHERS_USED": (Pin(0.29, 0.31, core_pins.others_used),),
    "THROTTLED": (
        Pin(0.019, 0.02, lambda x: core_pins.throttled(round(x * 1_000), 0)),
        Pin(0.0199, 0.0201, lambda x: core_pins.throttled(0, x * TEN)),
    ),
    "ANEW_PER_SECOND": (Pin(49, 50, lambda x: core_pins.made_anew(number=round(10 * x))),),
    "ANEW_THREADS": (Pin(19, 20, core_pins.few_anew),),
    "ANEW_CORES": (Pin(0.29, 0.31, lambda x: bool(processes_anew.find(facts_of(starting(100, round(10 * x * MS)))))),),
    "ANEW_IN": (Pin(0.899, 0.901, core_pins.made_in),),
    "ANEW_LIFE": (Pin(0.199, 0.201, lambda x: core_pins.made_anew(number=600, life=round(x * TEN))),),
    "POLLS_RUN": (Pin(0.49, 0.51, pins.polls_for),),
    "POLLS_IN": (Pin(0.49, 0.5, lambda x: pins.polls(yielding(round(100 * x), 100 - round(100 * x)))),),
    "POLLS_SEEN": (
        Pin(9, 10, lambda x: pins.polls(yielding(round(x), 0))),
        Pin(9, 10, lambda x: pins.loses_core_in(round(x), 0)),
    ),
    "RECLAIMS": (Pin(0.29, 0.31, lambda x: gets_memory(round(100 * x))),),
    "RUNS_IN": (Pin(0.24, 0.26, pins.runs_in),),
    "SHORT_SLEEP": (Pin(49_900_000, 50_100_000, lambda x: pins.sleeps_again(50, x)),),
    "SLEEPS_AGAIN": (Pin(9, 10, lambda x: pins.sleeps_again(x, 20_000_000)),),
    "PREEMPTED_IN": (Pin(0.49, 0.51, lambda x: pins.loses_core_in(round(100 * x), 100 - round(100 * x))),),
    "TURNS_CORES_LEAST": (Pin(0.89, 0.91, lambda x: take_turns(used=x)),),
    "TURNS_CORES_MOST": (Pin(1.04, 1.06, lambda x: take_turns(used=x)),),
    "TURNS_RUN": (Pin(0.09, 0.11, lambda x: take_turns(2, first=x, waits=0.89)),),
    "TURNS_WAIT": (Pin(0.29, 0.31, lambda x: take_turns(2, 1.04, waits=0.52 * x / (1 - x))),),
    "TURNS_ALL": (Pin(0.89, 0.91, lambda x: take_turns(waits=x - 0.25, other=1 - x)),),
    "HOT_FUNCTION": (Pin(0.49, 0.51, fact_pins.is_hot),),
    "STEPS_FOR_MEDIAN": (Pin(9, 10, fact_pins.slow_among),),
    "SLOW_STEPS_MATTER": (Pin(0.099, 0.101, fact_pins.slow_for),),
    "REGULAR_STEPS": (Pin(2, 3, fact_pins.regular),),
    "REGULAR_HAVE": (Pin(0.79, 0.81, fact_pins.regular_for),),
    **{name: (Pin(*each),) for name, each in periods.PINS.items()},
    "GIL_MATTERS": (Pin(0.049, 0.051, lambda x: bool(pins.gil_told(x))),),
    "GIL_HOLDER": (
        Pin(0.099, 0.101, lambda x: "loader" in pins.gil_told(0.5, x)),
        Pin(0.099, 0.101, lambda x: "hog" in pins.gil_told(0.5, 1, x)),
    ),
    "GIL_MAIN": (Pin(0.499, 0.5, lambda x: bool(gil_main.find(facts_of(held_by_gil(round(x * TEN)))))),),
    "SLEEP_SAVES": (Pin(0.49, 0.51, pins.peer_over_sleep),),
    "EVENTS_SAVE": (Pin(0.195, 0.205, pins.rival(waiting(POLL), 9_900 * MS)),),
    "EVENTS_BESIDE_WORK_SAVE": (Pin(0.59, 0.61, pins.rival(one(POLL, 9 * SECOND, runs=SECOND), 9 * SECOND)),),
    "ASIDE_SAVES": (Pin(0.49, 0.51, pins.aside), Pin(0.49, 0.51, pins.rival(workers(), 16 * SECOND))),
    "UNKNOWN_SAVES": (
        Pin(0.195, 0.205, pins.never_moved),
        Pin(0.195, 0.205, pins.rival(whole_host(waiting(READ)), 9_900 * MS)),
    ),
    "FOR_WORK_SAVES": (Pin(0.019, 0.021, fact_pins.comes_first),),
    "STUCK_BESIDE_WORK_SAVES": (Pin(0.49, 0.51, pins.stuck),),
    "RUNNING_SAVES": (Pin(0.49, 0.51, pins.rival(one(SLEEP, MS, runs=TEN), TEN)),),
    "SAMPLED_SAVES": (Pin(0.99, 1.01, pins.rival(one(SLEEP, MS, runs=TEN), TEN, has_samples=True)),),
    "QUEUED_SAVES": (Pin(0.74, 0.76, pins.rival(one(SPIN, TEN, state="runnable-preempted"), TEN)),),
    "EXPLAINED": (Pin(0.985, 0.995, pins.between), Pin(0.985, 0.995, pins.before_running)),
    "MOSTLY_ONE": (Pin(0.69, 0.71, pins.said_of_busy),),
    "ALONE": (Pin(0.59, 0.61, lambda x: said.is_alone(x, 4)),),
    "ALONE_FAIR": (Pin(1.58, 1.62, lambda x: said.is_alone(x / 2, 2)),),
    "HARDLY": (Pin(0.049, 0.051, said.are_idle),),
    "MOSTLY_INSIDE": (Pin(0.69, 0.71, pins.is_inside),),
    "NAMELESS_CODE": (Pin(0.49, 0.51, pins.is_nameless),),
    "CALLED_MOSTLY": (Pin(0.49, 0.51, said.calls_mostly),),
    "NOT_SAMPLED": (Pin(0.49, 0.51, said.is_hidden),),
    "BESIDE_LOCK": (Pin(0.195, 0.205, said.holds_up),),
    "QUEUED_IN": (Pin(0.24, 0.26, said.queued_in),),
    "ONE_SLEEPS": (Pin(0.49, 0.51, said.sleeps_in_it),),
    "ONE_SLEEPS_MOST": (Pin(1.04, 1.06, said.sleeps_in_it),),
    "LOST_IN": (Pin(0.89, 0.91, said.lost_in),),
    "KNOT": (Pin(0.048, 0.052, said.is_knot),),
    "PATH_PART": (Pin(0.049, 0.051, said.part_of_path),),
    "STEP_PART": (
        Pin(0.049, 0.051, said.part_of_step),
        Pin(0.049, 0.051, said.waits_in_step),
        Pin(0.049, 0.051, lambda x: said.runs_in_step(x, 90_000)),
    ),
    "MINOR_CALLS": (
        Pin(0.099, 0.101, calls.are_minor),
        Pin(0.099, 0.101, lambda x: calls.said_of_calls(x)[0]),
        Pin(0.099, 0.101, lambda x: calls.said_of_calls(x)[1]),
    ),
    "CALLED_BY": (Pin(0.89, 0.91, calls.called_by),),
    "CALL_IN_IOCTL": (Pin(0.49, 0.51, calls.in_ioctl),),
    "CALLED_ITSELF": (
        Pin(0.099, 0.101, lambda x: calls.called_itself(x, 0)),
        Pin(0.099, 0.101, lambda x: calls.called_itself(0.001, x)),
    ),
    "FAILED_CALLS": (Pin(99, 100, lambda x: calls.fail(x, 110)),),
    "CALL_TIME_PART": (Pin(0.0009, 0.0011, calls.part_of_time), Pin(0.0009, 0.0011, calls.part_outside)),
    "OUTSIDE_IOCTLS": (Pin(0.0099, 0.0101, calls.is_outside),),
    "SERIALISES": (
        Pin(1.95, 2.05, calls.takes_longer),
        Pin(1.95, 2.05, calls.ioctl_takes_longer),
        Pin(1.95, 2.05, host_pins.lock_is_slowed),
    ),
    "SHARED_TIME": (Pin(0.099, 0.101, lambda x: bool(calls.serialise(calls.shared_call(shared=round(x * 10_000))))),),
    "SHARED_LEAST": (Pin(0.099, 0.101, calls.other_longer_than),),
    "ALONE_CALLS": (Pin(9, 10, calls.is_known_alone),),
    "TURN_WORKS": (Pin(0.49, 0.51, calls.call_works),),
    "TURN_UNEVEN": (Pin(1.95, 2.05, calls.holds_others_up),),
    "ALIKE": (
        Pin(2, 3, said.are_alike),
        Pin(2, 3, lambda x: is_late(job(0.9, *[0.1] * (round(x) - 1)))),
        Pin(2, 3, lambda x: said.stands_out(*[100] * (round(x) - 1), 400)),
    ),
    "ALIKE_MATTER": (Pin(0.049, 0.051, said.alike_matter),),
    "OUTLIER": (
        Pin(3.45, 3.55, lambda x: said.stands_out(900, 900, 1_000, 1_100, 1_000 + x * 148.26)),
        Pin(3.45, 3.55, lambda x: is_late(job(0.2, 0.2, 0.3, 0.4, 0.3 + x * 0.14826))),
    ),
    "OUTLIER_MEDIAN": (Pin(0.249, 0.251, lambda x: said.stands_out(100, 100, 100, 100 * (1 + x))),),
    "OUTLIER_SHARE": (Pin(0.099, 0.101, lambda x: said.stands_out(0.5, 0.5, 0.5, 0.5 + x, of_shares=True)),),
    "GPU_LIMITED": (Pin(0.19, 0.21, host_pins.is_limited),),
    "PRESSURE_CPU": (Pin(0.49, 0.51, lambda x: host_pins.is_short("cpu", x)),),
    "PRESSURE_IO": (Pin(0.19, 0.21, lambda x: host_pins.is_short("io", x)),),
    "PRESSURE_MEMORY": (Pin(0.049, 0.051, lambda x: host_pins.is_short("memory", x)),),
    "PRESSURE_OWN": (
        Pin(0.099, 0.101, lambda x: host_pins.is_own_shortage("cpu", x)),
        Pin(0.099, 0.101, lambda x: host_pins.is_own_shortage("io", x)),
    ),
    "PRESSURE_IRQ": (Pin(0.099, 0.101, lambda x: host_pins.is_short("irq", x)),),
    "INTERRUPTED": (Pin(0.099, 0.101, host_pins.interrupts_take),),
    "CORE_TAKEN": (Pin(0.0099, 0.0101, host_pins.threads_of_core_are_known),),
    "CORE_INTERRUPTED": (Pin(0.249, 0.251, host_pins.core_is_told),),
    "CORE_UNEVEN": (Pin(1.99, 2.01, host_pins.core_is_uneven),),
    "CORE_USER": (Pin(0.249, 0.251, host_pins.thread_of_core_is_told),),
    "STOLEN_TIME": (Pin(0.049, 0.051, host_pins.is_stolen),),
    "LOCK_CONTENDED": (Pin(0.049, 0.051, host_pins.lock_is_told),),
    "BETWEEN": (Pin(0.099, 0.101, host_pins.pair_is_told),),
    "BETWEEN_TIME": (Pin(0.049, 0.051, host_pins.pair_is_long),),
    "OUTSIDER": (Pin(0.249, 0.251, host_pins.is_waited_for),),
    "OUTSIDER_WAITS": (Pin(0.049, 0.051, host_pins.waits_long_enough),),
    "STRAGGLER_EXCESS": (Pin(0.099, 0.101, lambda x: is_late(job(0.3, 0.3, 0.3, 0.3 + x))),),
    "RANKS_DIFFER": (Pin(0.249, 0.251, fact_pins.ranks_differ),),
    "TAKERS_TELL": (Pin(0.0099, 0.0101, said.tells_takers),),
    "TAKER": (Pin(0.049, 0.051, said.takers_named),),
    "TRACED_HAVE_CORES": (Pin(0.79, 0.81, said.traced_have_cores),),
    "CORES_ASKED": (Pin(0.099, 0.101, lambda x: said.asks("thread", "core", x)),),
    "CORES_ASKED_BESIDE_RUNNING": (Pin(0.29, 0.31, lambda x: said.asks("cpu", "core", x)),),
    "BESIDE_SLEEP": (Pin(0.19, 0.21, lambda x: said.asks("sleep", "lock", x)),),
    "ROW": (
        Pin(0.0009, 0.0011, row_pins.has_row),
        Pin(0.0009, 0.0011, lambda x: len(shown_locks([lock(), lock(time=round(x * TEN))], TEN))),
    ),
    "ROW_SAMPLES": (Pin(2, 3, row_pins.running_row),),
    "ROW_LOST_IN": (Pin(0.19, 0.21, row_pins.names_lost_in),),
    "ROW_PART": (Pin(0.019, 0.021, row_pins.names_waker), Pin(0.019, 0.021, row_pins.names_blocker)),
    "RUNNING_ROW": (Pin(0.099, 0.101, row_pins.runs_in_table),),
    "CONTENTION_ROW": (Pin(0.0099, 0.0101, row_pins.contention_row),),
    "UNFINISHED": (Pin(0.0099, 0.0101, row_pins.tells_unfinished),),
    "STEP_ROW": (Pin(0.0099, 0.0101, row_pins.step_row),),
    "MATRIX_FROM": (Pin(2, 3, row_pins.has_matrix),),
    "PHASE_SLICES": (Pin(1, 2, slice_pins.is_phase),),
    "PHASE_CHANGE": (Pin(0.39, 0.41, slice_pins.changes_by),),
    "PHASE_SCATTER": (Pin(5.9, 6.1, slice_pins.exceeds_scatter),),
    "HOLDS_IN": (Pin(0.94, 0.96, slice_pins.holds_in),),
    "HOLDS_MOST": (Pin(0.69, 0.71, slice_pins.holds_for),),
    "COMPARED_LEAST": (Pin(0.019, 0.021, compare_pins.differs_by),),
    "COMPARED_CHANCE": (Pin(0.0499, 0.0501, compare_pins.by_chance),),
    "COMPARED_LAST": (Pin(0.49, 0.51, compare_pins.has_last),),
    "COMPARED_STEP": (Pin(0.049, 0.051, compare_pins.step_differs_by),),
    "COMPARED_STEPS": (Pin(19, 20, compare_pins.are_steps_enough),),
    **connection_pins.PINS,
}
"""Pins by the names of thresholds: a new one needs one, too."""

LIMITS: dict[str, Pin] = {
    "INNERMOST": Pin(4, 5, limits.waits_for_peer),
    "TOLD_APART": Pin(2, 3, limits.told_apart),
    "NAMES_LISTED": Pin(3, 4, limits.names_listed),
    "TEAMS_NAMED": Pin(3, 4, limits.teams_named),
    "POOLS_NAMED": Pin(3, 4, limits.pools_named),
    "PROCESSES_NAMED": Pin(3, 4, limits.processes_named),
    "VALUES_NAMED": Pin(3, 4, limits.values_named),
    "PHASES_TOLD": Pin(3, 4, slice_pins.phases_told),
    "VARIABLES_NAMED": Pin(4, 5, limits.variables_named),
    "CORES_TOLD": Pin(2, 3, limits.all_of),
    "STILL_PLACES": Pin(3, 4, limits.still_places),
    "GIL_NAMED": Pin(2, 3, limits.gil_named),
    "BESIDE_LOCK_PLACES": Pin(2, 3, limits.beside_lock),
    "SLOW_PLACES": Pin(2, 3, limits.slow_places),
    "STEP_FUNCTIONS": Pin(3, 4, limits.step_functions),
    "PATH_NAMED": Pin(3, 4, limits.things_on_path),
    "KNOT_NAMED": Pin(8, 9, limits.knot_named),
    "ALIKE_GROUPS": Pin(2, 3, limits.alike_groups),
    "PIDS_IN_COMMAND": Pin(4, 5, limits.chosen_by_pid),
    "IOCTLS_NAMED": Pin(2, 3, limits.ioctls_named),
}
"""Pins of the limits of sentences and commands. What tables show, or a profile keeps, is in their modules' tests."""

ALL = [(name, pin) for name, pins in PINS.items() for pin in pins]


def test_all_are_pinned() -> None:
    assert list(PINS) == list(thresholds.table())
    assert list(LIMITS) == list(thresholds.limits())[: len(LIMITS)]
    assert list(thresholds.limits())[len(LIMITS)] == "WAKERS_NAMED", "the first of tables"


@pytest.mark.parametrize(("name", "pin"), ALL)
def test_it_decides_at_its_value(name: str, pin: Pin) -> None:
    assert pin.below <= thresholds.table()[name] <= pin.above
    assert pin.found(pin.below) != pin.found(pin.above)


@pytest.mark.parametrize(("name", "pin"), ALL)
def test_it_alone_decides(name: str, pin: Pin, monkeypatch: pytest.MonkeyPatch) -> None:
    """A higher threshold puts both sides below it: no other number is pinned here."""
    below = pin.found(pin.below)
    higher = Threshold(pin.above * 1.1, "", "")
    monkeypatch.setattr(thresholds, name, higher)
    assert pin.found(pin.above) == below


@pytest.mark.parametrize(("name", "pin"), LIMITS.items())
def test_more_than_a_limit_is_not_told(name: str, pin: Pin, monkeypatch: pytest.MonkeyPatch) -> None:
    assert pin.below == thresholds.limits()[name]
    assert [pin.found(number) for number in (pin.below, pin.above)] == [True, False]
    monkeypatch.setattr(thresholds, name, Limit(int(pin.above), "", ""))
    assert pin.found(pin.above)


@pytest.mark.parametrize(("name", "threshold"), thresholds.table().items())
def test_each_has_a_unit_and_a_reason(name: str, threshold: Threshold) -> None:
    assert threshold.unit and threshold.reason.rstrip(".") + "." == threshold.reason
    assert repr(threshold) == f"Threshold({float(threshold):g}, {threshold.unit!r})"
