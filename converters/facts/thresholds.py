"""Every number that decides what is judged: its value, its unit, and why it has that value.

docs/verdicts.md has this table. Numbers that only lay out a screen are not here.
"""

from __future__ import annotations


class Threshold(float):
    """A number that rules compare with."""

    unit: str
    reason: str

    def __new__(cls, value: float, unit: str, reason: str) -> Threshold:
        made = super().__new__(cls, value)
        made.unit, made.reason = unit, reason
        return made

    def __repr__(self) -> str:
        return f"Threshold({float(self):g}, {self.unit!r})"


# What is worth a sentence.
SIGNIFICANT = Threshold(
    0.05,
    "share of time",
    "A wait with less of its threads' time, or less of all active threads' time, cannot be what makes a job slow.",
)
TELLING = Threshold(0.1, "share of a verdict's time", "Places with less are left out: they would hide the others.")
WORTH = Threshold(0.1, "share of the first score", "A second verdict with less would distract from the first.")
WORTH_RUNNING = Threshold(0.4, "share of the first score", "Running is not a problem in itself: it has to be much.")

NOISE_LEAST = Threshold(0.02, "share of the score", "Two traces of the same program differ by so much anyway.")
NOISE_MOST = Threshold(
    0.1, "share of the score", "A verdict on few waits or samples (1/√n of n) does not hide one that is clearly lesser."
)
UNCLEAR = Threshold(
    0.5, "share of the active threads' time", "If more is not known, what is known may be the lesser part of the truth."
)

# Who is at work.
AT_WORK_SWITCHES = Threshold(5, "switches per second", "A process with fewer sleeps until something happens.")
AT_WORK_CPU = Threshold(0.005, "cores", "A process that uses less, and switches seldom, does nothing.")
SLIGHT = Threshold(0.02, "cores", "On a whole host, most processes that use less wait for work.")
IDLE_CPU = Threshold(0.01, "cores, of all threads together", "What runs, or wants to, for less has nothing to do.")
RELATED_NAMES = Threshold(6, "names of processes", "So few traced programs are assumed to work together.")

# Who keeps others waiting.
CAUSE = Threshold(0.2, "share of time", "A thread that others wait for is occupied for a good part of their wait.")
LATE_TIMES = Threshold(2, "times the share of the longest waiter", "Who comes last at a barrier works much longer.")
LATE_WAITS = Threshold(1 / 3, "of the longest waiter's share", "Who comes last at a barrier hardly waits there.")

BLAMED = Threshold(0.3, "share of what threads wait for others", "Who ends less of it is one of many.")
DOES_MOSTLY = Threshold(0.5, "share of the time", "What others do for less is not what they are waited for.")
BLOCKED_ITSELF = Threshold(0.8, "share of time", "Who is blocked for so long does little himself.")
HELD_MATTERS = Threshold(0.2, "share of the waiters' time", "Shorter waits for a lock are told elsewhere.")
HELD_MOSTLY = Threshold(0.5, "share of the waits", "Who has a lock for less is one of many.")
HOLDER_SHARE = Threshold(
    0.1, "share of the time of a process", "Its threads that have the lock for less are not meant."
)

# Threads woken in vain.
HERD_THREADS = Threshold(8, "threads", "Fewer that wake for nothing cost little.")
HERD_RUNS = Threshold(20_000, "ns on a core per wake-up", "Who does something after it was woken runs for longer.")
HERD_WAKEUPS = Threshold(100, "wake-ups per second and thread", "Fewer cost little.")
HERD_ALIKE = Threshold(2 / 3, "of the most wake-ups", "All of a herd are woken about as often.")

# Threads and cores.
CROWDED = Threshold(1.2, "threads that want a core, per core", "With fewer, each thread soon gets one.")
CROWD_WAITS = Threshold(0.2, "share of the time in which they could run", "Shorter waits for a core do not matter.")
CROWD_CORE = Threshold(0.05, "cores", "Less waiting for a core, over all threads, does not matter.")
CROWD_MEMBER = Threshold(0.05, "share of the crowd's time", "Programs with less are not named among a crowd.")
MATTERS_FOR_HOST = Threshold(
    0.02, "share of all running and waiting for a core", "A small process' problem is none of the host's."
)
POOLS_WANT = Threshold(1.5, "cores per process", "Variables for the number of threads are no hint below it.")
CORES_TAKEN = Threshold(0.6, "share of the allowed cores", "Who gets less is crowded out by others, not by itself.")
THROTTLED = Threshold(0.02, "share of the quota's periods, or of the trace", "Stops that are rarer do not matter.")
ANEW_PER_SECOND = Threshold(50, "threads created per second", "Fewer new threads cost little.")
ANEW_THREADS = Threshold(20, "threads", "So many in all, to be no coincidence.")
ANEW_LIFE = Threshold(0.2, "share of the trace", "A pool's threads that live for longer are kept, not made anew.")

# Running.
POLLS_RUN = Threshold(0.5, "share of time", "A thread that runs for less does not burn a core while it waits.")
POLLS_IN = Threshold(0.5, "share of samples or preemptions", "Who mostly asks whether something has happened polls.")
POLLS_SEEN = Threshold(10, "samples or preemptions", "Fewer show next to nothing.")
RUNS_IN = Threshold(0.25, "share of samples or preemptions", "A function with less is one of many.")
SHORT_SLEEP = Threshold(50_000_000, "ns, mean", "Who sleeps for longer does not ask for something all the time.")
SLEEPS_AGAIN = Threshold(10, "sleeps of each thread", "Fewer may be a coincidence.")
PREEMPTED_IN = Threshold(
    0.5, "share of preemptions", "A function in which a thread seldom loses its core is no hot one."
)

# Python's interpreter lock.
GIL_MATTERS = Threshold(0.05, "share of the threads' time", "Shorter waits for it are usual.")
GIL_HOLDER = Threshold(0.1, "share of the waits", "Who has it for less is not named, nor is a function.")
GIL_MAIN = Threshold(0.5, "share of the main thread's time", "Such a main thread is held up, whatever else happens.")

# How much a verdict is believed to save: confidence.
SLEEP_SAVES = Threshold(0.5, "confidence", "Nobody causes a sleep: it may be wanted.")
EVENTS_SAVE = Threshold(0.2, "confidence", "Servers wait for work in this way.")
EVENTS_BESIDE_WORK_SAVE = Threshold(
    0.6, "confidence", "A wait for one of few events in a thread that works, too, is no loop that waits for requests."
)
ASIDE_SAVES = Threshold(0.5, "confidence", "A wait that delays no main thread may delay nobody.")
UNKNOWN_SAVES = Threshold(
    0.2, "confidence", "A wait for the whole trace without a traced cause, or in a process that does little."
)
STUCK_BESIDE_WORK_SAVES = Threshold(
    0.5, "confidence", "What is blocked for the whole trace may be of no interest to others, which get on."
)
RUNNING_SAVES = Threshold(0.5, "confidence", "Time on cores, of which nobody knows in which function.")
SAMPLED_SAVES = Threshold(1.0, "confidence", "Time on cores in a known function.")
QUEUED_SAVES = Threshold(0.75, "confidence", "Waits for a core that no quota and no crowd explains.")
EXPLAINED = Threshold(0.99, "of the score of what explains it", "An effect comes right after its cause.")
MOSTLY_ONE = Threshold(0.7, "share of running threads' time", "Threads of one name with as much are told alone.")


def table() -> dict[str, Threshold]:
    """All thresholds by name, in the order above."""
    return {name: value for name, value in globals().items() if isinstance(value, Threshold)}
