"""Every number that decides what is judged, said or shown: its value, its unit, and why it has that value.

docs/verdicts.md has this table. Numbers that only lay out a screen are not here.
"""

from __future__ import annotations

from .threshold_types import Limit, Threshold

# What a wait is for.
PASSES_ON = Threshold(
    0.02, "share of a function's time", "A caller or a callee with less is no other way through the function."
)
ROUGH = Threshold(0.02, "standard error of a share", "A share that samples show so roughly is told without decimals.")
FEW_SAMPLES = Threshold(10, "samples", "Fewer show next to nothing.")

# What is worth a sentence.
SIGNIFICANT = Threshold(
    0.05,
    "share of time",
    "A wait with less of its threads' time, or less of all active threads' time, cannot be what makes a job slow.",
)
TELLING = Threshold(0.1, "share of a verdict's time", "Places with less are left out: they would hide the others.")
WORTH = Threshold(0.1, "share of the first score", "A second verdict with less would distract from the first.")
WORTH_RUNNING = Threshold(0.4, "share of the first score", "Running is not a problem in itself: it has to be much.")
MOSTLY = Threshold(0.5, "share of time, or of a number", "What is done for less is not what mostly happens.")

ON_ONE = Threshold(0.8, "share of a wait", "A file or a connection with less is one of several things that it is for.")
ON_ONE_PEER = Threshold(
    0.8, "share of an event loop's wait", "A process that ends less of it is one of several that it waits for."
)
DISK_LIMIT_REACHED = Threshold(
    0.8, "share of what a control group may use of a disk", "Who uses less is not held back by the limit all the time."
)
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
TRACER_TOLD = Threshold(0.05, "cores", "A tracer that takes less from others changes nothing that is told.")
CALM_CORES = Threshold(0.05, "cores, of the whole host", "A host whose processes use less has nothing to do.")
QUIET = Threshold(0.99, "share of time", "A thread with less in one wait that others end does something itself.")
QUIET_BESIDE = Threshold(
    0.95, "share of time", "The same beside a quiet thread of its process: one of a pool, which had little to do."
)
GETS_ON = Threshold(
    0.001, "share of the longest thread's time", "A process whose threads run, or want to, for less does not progress."
)
ONE_WAIT = Threshold(0.95, "share of a thread's time", "Who waits in one place for less is not only waiting for work.")
ENDS_ALIKE = Threshold(0.95, "share of a wait", "Who ends less of it does not show what the wait is for.")
INTERVAL_WAITS = Threshold(3, "waits", "Fewer have no interval.")
STEADY = Threshold(1.5, "times the mean", "No wait of a steady interval is longer, nor the mean that much longer.")
FROM_ANCESTORS = Threshold(0.9, "share of a wait", "Who waits less for its ancestors waits for others, too.")
NEEDED = Threshold(0.05, "share of a thread's time", "A thread for which others wait for less is not needed by them.")
RELATED_NAMES = Threshold(6, "names of processes", "So few traced programs are assumed to work together.")

ALL_WAIT_THREADS = Threshold(2, "threads", "One alone that waits for a lock waits for no other of its process.")

# Who keeps others waiting.
CAUSE = Threshold(0.2, "share of time", "A thread that others wait for is occupied for a good part of their wait.")
LATE_TIMES = Threshold(2, "times the share of the longest waiter", "Who comes last at a barrier works much longer.")
LATE_WAITS = Threshold(1 / 3, "of the longest waiter's share", "Who comes last at a barrier hardly waits there.")

PEER_RUNS = Threshold(0.2, "cores", "Who uses less while others wait for it is occupied with something else.")
PEER_HARDLY_RUNS = Threshold(0.02, "cores", "Who uses less while others wait for it waits itself.")
BOTH_WAIT = Threshold(0.5, "share of the time", "Two ends that wait at once for less take turns.")
BLAMED = Threshold(0.3, "share of what threads wait for others", "Who ends less of it is one of many.")
DOES_MOSTLY = Threshold(0.5, "share of the time", "What others do for less is not what they are waited for.")
BLOCKED_ITSELF = Threshold(0.8, "share of time", "Who is blocked for so long does little himself.")
HELD_MATTERS = Threshold(0.2, "share of the waiters' time", "Shorter waits for a lock are told elsewhere.")
HELD_MOSTLY = Threshold(0.5, "share of the waits", "Who has a lock for less is one of many.")
ASKS_AS_OFTEN = Threshold(0.8, "requests per sleep, or sleeps per request", "Others sleep for something else.")
ASKS_LEAST = Threshold(4, "requests of a thread that were refused", "Fewer may be a coincidence.")
LOOKS = Threshold(2, "looks at the locks of files", "Fewer do not show that somebody has one all the time.")
HOLDER_SHARE = Threshold(0.1, "share of a process's time", "Its threads that have the lock for less are not meant.")

CONVOY_TIME = Threshold(100_000_000, "ns in which somebody always waits", "A shorter queue soon empties again.")
CONVOY_WAITS = Threshold(20, "waits in a queue", "Fewer are no convoy, however long.")

# Threads woken in vain.
HERD_THREADS = Threshold(8, "threads", "Fewer that wake for nothing cost little.")
HERD_RUNS = Threshold(20_000, "ns on a core per wake-up", "Who does something after it was woken runs for longer.")
HERD_WAKEUPS = Threshold(100, "wake-ups per second and thread", "Fewer cost little.")
HERD_ALIKE = Threshold(2 / 3, "of the most wake-ups", "All of a herd are woken about as often.")

# Threads and cores.
CROWDED = Threshold(1.2, "threads that want a core, per core", "With fewer, each thread soon gets one.")
HANDS_ON_WANTED = Threshold(
    5, "threads that want a core, per core", "Of more, most wait for a core, however short they run."
)
HANDS_ON = Threshold(
    100_000,
    "ns on a core per wait",
    "Who runs for longer before it waits for others again does more than to hand on work.",
)
CROWD_WAITS = Threshold(0.2, "share of the time in which they could run", "Shorter waits for a core do not matter.")
CROWD_CORE = Threshold(0.05, "cores", "Less waiting for a core, over all threads, does not matter.")
TEAM = Threshold(2, "threads", "One thread alone shares its work with nobody.")
FED_OFTEN = Threshold(2, "waits of a thread", "What ends one may as well be its end.")
CROWD_MEMBER = Threshold(0.05, "share of the crowd's time", "Programs, and pools, with less are not named.")
MATTERS_FOR_HOST = Threshold(
    0.02, "share of all running and waiting for a core", "A small process' problem is none of the host's."
)
POOLS_WANT = Threshold(1.5, "cores per process", "Variables for the number of threads are no hint below it.")
CORES_TAKEN = Threshold(0.6, "share of the allowed cores", "Who gets less is crowded out by others, not by itself.")
OTHERS_USED = Threshold(
    0.3, "share of the missing cores", "If others used less, the cores went to interrupts, or to the trace itself."
)
THROTTLED = Threshold(0.02, "share of the quota's periods, or of the trace", "Stops that are rarer do not matter.")
ANEW_PER_SECOND = Threshold(50, "threads created per second", "Fewer new threads cost little.")
ANEW_THREADS = Threshold(20, "threads", "So many in all, to be no coincidence.")
ANEW_CORES = Threshold(0.3, "cores", "Short-lived processes that together use, or want, less cost little.")
ANEW_IN = Threshold(0.9, "share of the threads", "If fewer were created in one place, it is one of several.")
ANEW_LIFE = Threshold(0.2, "share of the trace", "A pool's threads that live for longer are kept, not made anew.")

# Running.
POLLS_RUN = Threshold(0.5, "share of time", "A thread that runs for less does not burn a core while it waits.")
POLLS_IN = Threshold(0.5, "share of samples or preemptions", "Who mostly asks whether something has happened polls.")
POLLS_SEEN = Threshold(10, "samples or preemptions", "Fewer show next to nothing.")
RECLAIMS = Threshold(0.3, "share of samples", "Threads that do less to get memory have another trouble.")
RUNS_IN = Threshold(0.25, "share of samples or preemptions", "A function with less is one of many.")
SHORT_SLEEP = Threshold(50_000_000, "ns, mean", "Who sleeps for longer does not ask for something all the time.")
SLEEPS_AGAIN = Threshold(10, "sleeps of each thread", "Fewer may be a coincidence.")
PREEMPTED_IN = Threshold(
    0.5, "share of preemptions", "A function in which a thread seldom loses its core is no hot one."
)

# Threads that take turns.
TURNS_CORES_LEAST = Threshold(0.9, "cores", "Threads of which one runs at a time use, or want, nearly one core.")
TURNS_CORES_MOST = Threshold(1.05, "cores", "If they use more, several of them run at a time.")
TURNS_RUN = Threshold(0.1, "share of its time", "A thread that runs for less has little to do.")
TURNS_WAIT = Threshold(0.3, "share of its time", "A thread that waits for the others for less hardly needs its turn.")
TURNS_ALL = Threshold(0.9, "share of its time", "A thread that does something else, too, may wait because of that.")

HOT_FUNCTION = Threshold(0.5, "share of the running time", "A function with less is not the one to be timed next.")

# Steps that are much slower than others.
STEPS_FOR_MEDIAN = Threshold(10, "steps", "The median of fewer tells nothing.")
SLOW_STEPS_MATTER = Threshold(0.1, "share of the steps' time", "Slow steps with less do not matter.")
REGULAR_STEPS = Threshold(3, "steps", "Fewer that are equally far apart are a coincidence.")
REGULAR_HAVE = Threshold(0.8, "share of the slow steps' time", "If regular ones have less, slow steps do not come so.")

# Steps that nobody named: regular intervals between the ends of a thread's waits in one place.
PERIOD_INTERVALS = Threshold(10, "intervals", "Fewer that are alike can be a coincidence.")
PERIOD_SCATTER = Threshold(
    0.2, "share of their median", "Intervals that differ more from it in the median are not regular: at random, 0.7."
)
PERIOD_NEAR = Threshold(0.5, "share of their median", "An interval that differs more from it is of another length.")
PERIOD_NEARLY_ALL = Threshold(
    0.9, "share of the intervals", "If fewer are near the median, two lengths take turns, or several waits make a step."
)
PERIOD_WORK = Threshold(0.1, "share of its time", "A thread that does less beside the waits only looks at something.")
PERIOD_TIMED_WORK = Threshold(
    0.5, "share of its time", "If a timer ends the waits, the loop asks at each tick, unless it mostly works."
)
PERIOD_SAME = Threshold(0.8, "share of the longest one", "Shorter periods of a thread are parts of its steps.")
PASSES_BATCHES_ON = Threshold(0.8, "share of its time", "Who waits for others for less makes something itself.")
MAKES_BATCHES = Threshold(0.9, "share of what they end", "Threads that have the rest ended little of it.")

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
FOR_WORK_SAVES = Threshold(0.02, "confidence", "A wait for work is for what the ancestor that hands it out does.")
STUCK_BESIDE_WORK_SAVES = Threshold(
    0.5, "confidence", "What is blocked for the whole trace may be of no interest to others, which get on."
)
RUNNING_SAVES = Threshold(0.5, "confidence", "Time on cores, of which nobody knows in which function.")
SAMPLED_SAVES = Threshold(1.0, "confidence", "Time on cores in a known function.")
QUEUED_SAVES = Threshold(0.75, "confidence", "Waits for a core that no quota and no crowd explains.")
EXPLAINED = Threshold(0.99, "of the score of what explains it", "An effect comes right after its cause.")
MOSTLY_ONE = Threshold(0.7, "share of running threads' time", "Threads of one name with as much are told alone.")

# What is said beside a verdict.
ALONE = Threshold(0.6, "share of several threads' time", "One of them with less is not the one that matters.")
ALONE_FAIR = Threshold(1.6, "times the fair share", "One of two threads has more than 0.6 easily.")
HARDLY = Threshold(0.05, "share of the waits of idle threads", "If others wait for longer, not only idle ones do.")
MOSTLY_INSIDE = Threshold(0.7, "share of a place's samples", "A function with less does not tell what the place does.")
NAMELESS_CODE = Threshold(0.5, "share of a process's samples", "With less, most functions have names.")
CALLED_MOSTLY = Threshold(0.5, "share of a function's samples", "What it calls for less is one of several things.")
NOT_SAMPLED = Threshold(0.5, "share of the running time", "If less of it was not sampled, the rest tells enough.")
BESIDE_LOCK = Threshold(
    0.2, "share of one thread's time", "A holder that matters does for longer what keeps the lock from the others."
)
QUEUED_IN = Threshold(0.25, "share of the waits for a core", "A place with less of them is one of many.")
ONE_SLEEPS = Threshold(0.5, "share of the trace", "If threads sleep for less, it is not inside of the lock.")
ONE_SLEEPS_MOST = Threshold(1.05, "share of the trace", "If they sleep for longer, several of them do at a time.")
LOST_IN = Threshold(0.9, "share of a wait for a core", "Where less of it began is not its place.")
KNOT = Threshold(0.05, "share of all waiting", "Threads that wait for each other for less do not matter.")
PATH_PART = Threshold(0.05, "share of the part of a thread in a path", "What it does for less is not told.")
STEP_PART = Threshold(0.05, "share of what slow steps take more", "Parts with less are not told.")

# Calls.
MINOR_CALLS = Threshold(0.1, "share of the threads' time", "Calls with less are not what the threads wait for.")
CALLED_BY = Threshold(0.9, "share of a call's time", "If threads of one name have less, others call, too.")
CALL_IN_IOCTL = Threshold(0.5, "share of a call's time", "An ioctl with less is not what the call mostly does.")
CALLED_ITSELF = Threshold(
    0.1, "share of a function's time or calls", "With less, callers may be missing in stacks: it is called by others."
)
FAILED_CALLS = Threshold(100, "calls that fail", "Fewer may be the usual way to ask for something.")
CALL_TIME_PART = Threshold(0.001, "share of the calling threads' time", "Parts with less are not told.")
OUTSIDE_IOCTLS = Threshold(0.01, "share of the time in ioctls", "If no function made less, it is not worth a line.")
SERIALISES = Threshold(2, "times the time alone", "A call that others slow down by less need not serialise them.")
SHARED_TIME = Threshold(0.1, "share of a call's time", "If several are inside for less, others may be the cause.")
SHARED_LEAST = Threshold(0.1, "share of the longest shared time", "A call with less is not the one that matters.")
ALONE_CALLS = Threshold(10, "calls", "Fewer without another process do not tell how long one takes alone.")
TURN_WORKS = Threshold(0.5, "share of the turns", "A call that is on a core for less mostly waits itself.")
TURN_UNEVEN = Threshold(2, "times the others' mean turn", "A process with shorter turns holds the others up no more.")

# Processes that are alike.
ALIKE = Threshold(3, "processes", "Fewer have no median from which one stands out.")
ALIKE_MATTER = Threshold(0.05, "share of all time", "Groups with less are not compared.")
OUTLIER = Threshold(
    3.5, "standard deviations from the median", "Nearer values are usual (modified z-score of Iglewicz and Hoaglin)."
)
OUTLIER_MEDIAN = Threshold(0.25, "share of the median", "What differs by less stands out in no way that matters.")
OUTLIER_SHARE = Threshold(0.1, "difference of shares", "The same for shares.")

# What is short on the host.
GPU_LIMITED = Threshold(0.2, "share of a GPU's samples", "Clocks that are limited for less are those of bursts.")
PRESSURE_CPU = Threshold(0.5, "share of the trace", "If a task waits for a core for less, cores are short in bursts.")
PRESSURE_IO = Threshold(0.2, "share of the trace", "A task that waits for a disk for less does not tell a slow one.")
PRESSURE_MEMORY = Threshold(0.05, "share of the trace", "Tasks wait for memory for less when files are read once.")
PRESSURE_OWN = Threshold(0.1, "share of the trace", "What traced threads wait for less together is not their trouble.")
PRESSURE_IRQ = Threshold(0.1, "share of the trace", "Interrupts of a busy network stop tasks for a few percent.")
INTERRUPTED = Threshold(0.1, "share of the cores' time", "Interrupts of a busy network take a few percent.")
CORE_TAKEN = Threshold(0.01, "share of a core's time", "Who ran on a core that loses less is not looked for.")
CORE_INTERRUPTED = Threshold(0.25, "share of a core's time", "A core that serves a fast device is in them for less.")
CORE_UNEVEN = Threshold(2, "times the mean of all cores", "If others lose as much, it is told of all together.")
CORE_USER = Threshold(0.25, "share of a core's time", "A thread that has the core for less is one of several.")
STOLEN_TIME = Threshold(0.05, "share of the cores' time", "Hosts of virtual machines take less for themselves.")
LOCK_CONTENDED = Threshold(0.05, "share of the trace", "Waits for a lock that add up to less do not matter.")
BETWEEN = Threshold(0.1, "share of all waiting", "Who waits for another process for less is one of many.")
BETWEEN_TIME = Threshold(0.05, "share of the trace", "Waits for another process that add up to less do not matter.")
OUTSIDER = Threshold(0.25, "share of the ranks' waits in a call", "Who is inside for less is one of several.")
OUTSIDER_WAITS = Threshold(0.05, "share of the ranks' time", "If they wait in a call for less, it does not matter.")

# Ranks of a job.
STRAGGLER_EXCESS = Threshold(
    0.1, "share of a rank's time above the median", "Who works longer than the others by less does not delay them much."
)
RANKS_DIFFER = Threshold(
    0.25, "difference of ranks' shares", "Ranks whose times of each kind differ by less do much the same."
)


# Who had the cores.
TAKERS_TELL = Threshold(0.01, "share of the threads' time", "A wait for a core takes a moment after each wake-up.")
TAKER = Threshold(0.05, "share of the cores' time", "Processes with less are not named.")
TRACED_HAVE_CORES = Threshold(0.8, "share of the cores", "If traced processes use less, others may have had them.")

# The next command.
CORES_ASKED = Threshold(0.1, "share of the threads' time", "Who else has the cores is no question for shorter waits.")
CORES_ASKED_BESIDE_RUNNING = Threshold(
    0.3, "share of the threads' time", "If threads mostly run, in which functions they do is asked first."
)
BESIDE_SLEEP = Threshold(0.2, "share of the threads' time", "Who ends shorter waits is not asked if they sleep.")

# Rows of tables.
ROW = Threshold(0.001, "share of all time", "Waits with less share a row, and locks with less have none.")
ROW_SAMPLES = Threshold(3, "samples", "Work with fewer shares a row: its share means nothing.")
ROW_LOST_IN = Threshold(0.2, "share of a wait for a core", "Where less of it began is not named in its row.")
ROW_PART = Threshold(0.02, "share of a row's time", "Wakers, and those that block, with less are not named.")
RUNNING_ROW = Threshold(0.1, "share of all time", "What runs for less has no table where lines are few.")
CONTENTION_ROW = Threshold(0.01, "cores", "Processes that want less have no row.")
UNFINISHED = Threshold(0.01, "share of all time", "Waits that had not ended with less are not mentioned.")
STEP_ROW = Threshold(0.01, "share of a loop", "Waits of steps with less have no row.")
MATRIX_FROM = Threshold(3, "traced processes that wait", "Who waits for whom of fewer is told by the rows.")

# What changes within a trace.
PHASE_SLICES = Threshold(2, "slices", "Of fewer it is not known how much they scatter.")
PHASE_CHANGE = Threshold(
    0.4, "difference of shares", "What threads do for nearly as long before and after is not what changes."
)
PHASE_SCATTER = Threshold(
    6, "standard errors", "Slices at random seldom differ by more, also at the border where they differ most."
)
HOLDS_IN = Threshold(0.95, "share of a verdict's time", "If less is in a part of the trace, it holds outside, too.")
HOLDS_MOST = Threshold(0.7, "share of the slices", "What holds in more of them holds for most of the trace.")

# How much is told.
INNERMOST = Limit(4, "frames", "A function that waits for one peer, or takes a lock, calls others that do the work.")
TOLD_APART = Limit(2, "threads", "More of a larger number are not named by id.")
NAMES_LISTED = Limit(3, "names", "More are counted.")
TEAMS_NAMED = Limit(3, "teams of threads", "More are in the JSON.")
POOLS_NAMED = Limit(3, "pools of threads", "More are in the JSON.")
PROCESSES_NAMED = Limit(3, "names of processes", "More are others.")
VALUES_NAMED = Limit(3, "values of a variable", "More are others.")
PHASES_TOLD = Limit(3, "phases of a process", "More are no story: the strip shows them.")
VARIABLES_NAMED = Limit(4, "variables", "Of those for numbers of threads, the usual ones are named even if not set.")
CORES_TOLD = Limit(2, "sentences of each rule on cores", "More are alike.")
STILL_PLACES = Limit(3, "places", "More of processes that did not move are only named.")
GIL_NAMED = Limit(2, "threads that have the lock", "More are not worth a sentence.")
BESIDE_LOCK_PLACES = Limit(2, "things", "More that threads do beside a lock are not worth a sentence.")
SLOW_PLACES = Limit(2, "places", "More of slow steps are not worth a sentence.")
STEP_FUNCTIONS = Limit(3, "functions", "More are in the table.")
PATH_NAMED = Limit(3, "things", "More that a thread does on a path are in the table.")
KNOT_NAMED = Limit(8, "threads", "More of a knot are counted.")
ALIKE_GROUPS = Limit(2, "groups", "More of processes that are alike are not compared.")
PIDS_IN_COMMAND = Limit(4, "processes", "More are chosen by name.")
IOCTLS_NAMED = Limit(2, "ioctls", "More are counted.")

# How much is shown in tables.
WAKERS_NAMED = Limit(3, "wakers", "More of a wait are in the JSON.")
PATH_SHOWN = Limit(3, "parts of a path", "More of a file's path are in the JSON, and in a sentence.")
HOLDERS_NAMED = Limit(3, "threads", "More that had a lock are counted.")
BLOCKERS_NAMED = Limit(3, "processes or threads", "More that one blocks, or that block it, are counted.")
STILL_ROWS = Limit(2, "rows", "More places of processes that did not move share one.")
LOCK_ROWS = Limit(8, "rows", "More locks are in the JSON.")
BLOCKING_ROWS = Limit(6, "rows", "More who block each other are in the JSON.")
MATRIX_ROWS = Limit(8, "rows", "More are in the JSON.")
MATRIX_COLUMNS = Limit(6, "columns", "More do not fit into 80 characters.")
KNOTS_TOLD = Limit(2, "knots", "More are in the JSON.")
CONTENTION_ROWS = Limit(5, "rows", "More names of processes share one.")
ALIKE_ROWS = Limit(16, "rows", "Of more processes that are alike, only those that stand out are shown.")
OUTLIER_ROWS = Limit(8, "rows", "So many of those.")
SHARING_ROWS = Limit(10, "rows", "More processes that were in a call together share one.")
PATH_ROWS = Limit(10, "rows", "More parts of a path are in the JSON.")
FOUND_STEPS = Limit(2, "places", "More whose regular waits may be steps are in the JSON.")
STEP_THREADS = Limit(3, "threads", "More that make steps are in the JSON.")
VALUES_SHOWN = Limit(20, "values", "More of an answer are in the JSON.")
PIDS_SHOWN = Limit(32, "processes", "The pids of more are not listed.")
PID_RANGES = Limit(8, "ranges of pids", "More are left out.")

# How much is kept.
CALL_PLACES = Limit(3, "places", "More from which a function was called are not kept.")
CALL_FRAMES = Limit(4, "frames", "More of a caller's stack are not kept.")
EVENT_FRAMES = Limit(3, "frames", "More around an event are not kept.")
SLOWEST_STEPS = Limit(5, "steps", "More of the slowest are not kept.")
STEP_PLACES = Limit(8, "places", "More in which steps wait, or run, are not kept.")
MAKERS = Limit(256, "threads", "More that end a thread's waits do not make its batches.")
WAKERS_KEPT = Limit(8, "wakers", "More of a wait are not kept.")
PATH_KEPT = Limit(100, "parts", "More of a path are not in the JSON.")
NODES_KEPT = Limit(100, "processes or threads", "More who block each other are one.")
PAIRS_KEPT = Limit(1_000, "pairs", "More of them are one.")
TIDS_KEPT = Limit(4, "threads", "The ids of more of one name are not kept.")
VERDICT_THREADS = Limit(64, "threads", "More of a verdict are counted in the JSON.")
CONTENDED_KEPT = Limit(100, "calls and locks of a host", "Others have little time.")
CONTENDED_ROWS = Limit(2, "locks of a host that are told", "More are in the JSON.")
BETWEEN_ROWS = Limit(3, "rows of who waits for whom in a scan", "More are in the JSON.")
FINDINGS = Limit(3, "sentences of a scan beside its answer", "More are not read.")
SCAN_ROWS = Limit(12, "rows of processes in a scan", "More are in the JSON.")
COMPARED_LEAST = Threshold(0.02, "s per s of the trace", "Smaller differences of two runs do not matter.")
COMPARED_CHANCE = Threshold(0.05, "probability", "A difference that is as likely without a change is noise.")
COMPARED_LAST = Threshold(0.5, "length of the others", "A last slice that is shorter is left out: its rates are noise.")
COMPARED_RUNS = Limit(3, "runs of each side", "Fewer do not show how much runs of one job differ.")
COMPARED_STEP = Threshold(0.05, "share of a step", "A step that takes so little more or less is as it was.")
COMPARED_STEPS = Threshold(20, "steps of each side", "The mean of fewer is that of a few slow ones.")
COMPARED_LINES = Limit(40, "lines of a comparison on a terminal", "More do not fit a screen; they are in the JSON.")
COMPARED_ROWS = Limit(10, "rows of differences of two runs", "More are in the JSON.")
COMPARED_MOVED = Limit(4, "functions, and calls, of two runs", "More are in the JSON.")
COMPARED_VERDICTS = Limit(6, "verdicts of two runs that differ", "More are in the JSON.")
COMPARED_NUMBERS = Limit(3, "numbers of processes of two runs that differ", "More are in the JSON.")
RANK_ROWS = Limit(8, "rows of ranks in a scan", "More are in the JSON, those that stand out first.")
RANK_COLUMNS = Limit(3, "kinds of waits of ranks", "More, beside the waits for other ranks, are in the JSON.")
JOBS_SHOWN = Limit(3, "jobs of a scan", "More are in the JSON.")
GPU_LINES = Limit(3, "lines on GPUs and who has them open", "More are in the JSON.")
SLICE_PLACES = Limit(8, "places of a process", "More in which its threads wait are only kinds of waits in slices.")
SLICE_THREADS = Limit(16_384, "threads", "The slices of more are those of their processes.")
HOT_NAMED = Limit(2, "functions of a row in which processes run", "More are in the JSON.")
IDLE_NAMED = Limit(8, "names of idle processes", "More are counted.")
WATCHED = Limit(3, "verdicts in a line of --watch", "The first is what matters; more are in the JSON.")
WATCHED_JSON = Limit(50, "verdicts in an object of --watch", "A line of a log has to stay short.")
HOLDING_NAMED = Limit(3, "processes for which --when holds", "More are counted; the JSON has them.")
HOLDING_JSON = Limit(100, "processes for which --when holds", "More are counted in the JSON, too.")
LIVE_THREADS = Limit(20, "threads of a process", "More do not fit on the screen of --live.")
LIVE_STACK = Limit(40, "frames of a stack", "More do not fit on the screen of --live.")
LIVE_PROCESSES = Limit(500, "processes", "More are not sent to the screen of --live.")

from .collective_thresholds import *  # noqa: E402, F403 - last in the table
from .connection_thresholds import *  # noqa: E402, F403 - last in the table


def table() -> dict[str, Threshold]:
    """All thresholds by name, in the order above."""
    return {name: value for name, value in globals().items() if isinstance(value, Threshold)}


def limits() -> dict[str, Limit]:
    """All limits by name, in the order above."""
    return {name: value for name, value in globals().items() if isinstance(value, Limit)}
