"""Jobs of other languages' runtimes: Java, Go, node, Ruby, Perl, Erlang."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from job import Job, Truth
from stage import PYTHON, Stage

JAVA_HERE = {"java": "openjdk-17-jre-headless", "javac": "openjdk-17-jdk-headless"}
GO_HERE = {"go": "golang-go"}
PYTHON_HERE = {PYTHON: "python3"}
SLOW_SERVICE = ("look_up_price|slow_service",)


def java(name: str, *options: str) -> Callable[[Stage], Sequence[int]]:
    return lambda stage: [start_java(stage, name, *options)]


def start_java(stage: Stage, name: str, *options: str, arguments: Sequence[object] = ()) -> int:
    stage.run("javac", stage.program(f"{name}.java"))
    command = ["java", "-XX:+UseSerialGC", "-XX:-UsePerfData", *options, "-cp", ".", name]
    return stage.start(*command, *arguments, ready="ready").pid


def build_go(stage: Stage, name: str) -> None:
    places = {"GOCACHE": str(stage.folder / "cache"), "GOPATH": str(stage.folder / "go"), "GO111MODULE": "off"}
    stage.run("go", "build", "-trimpath", "-o", name, stage.program(f"{name}.go"), environment=places)


def go(name: str, quota: int = 0, *, slow_disk: bool = False) -> Callable[[Stage], Sequence[int]]:
    def start(stage: Stage) -> Sequence[int]:
        build_go(stage, name)
        groups = [stage.group("cpu", cfs_period_us=50_000, cfs_quota_us=quota)] if quota else []
        groups += [stage.slow_disk()] if slow_disk else []
        return [stage.start(f"./{name}", ready="ready", groups=groups).pid]

    return start


def slow_service(stage: Stage) -> tuple[int, int]:
    """Port and process of the service."""
    port = stage.port()
    return port, stage.python("slow_service.py", port)


def java_prices(stage: Stage) -> Sequence[int]:
    port, service = slow_service(stage)
    return [start_java(stage, "Prices", "-Xint", arguments=[port]), service]


def go_prices(stage: Stage) -> Sequence[int]:
    build_go(stage, "prices")
    port, service = slow_service(stage)
    return [stage.start("./prices", port, ready="ready").pid, service]


def node_prices(stage: Stage) -> Sequence[int]:
    port, service = slow_service(stage)
    return [stage.start("node", stage.program("prices.js"), port, ready="ready").pid, service]


def convert(stage: Stage) -> Sequence[int]:
    return [stage.start("node", "--perf-basic-prof", stage.program("convert.js"), ready="ready").pid]


def passwords(stage: Stage) -> Sequence[int]:
    return [stage.start("node", stage.program("passwords.js"), ready="ready").pid]


def ruby(stage: Stage) -> Sequence[int]:
    return [stage.start("ruby", stage.program("invoices.rb"), ready="ready").pid]


def perl(stage: Stage) -> Sequence[int]:
    script = stage.program("nightly.pl")
    return [stage.start("perl", script, work, ready="ready").pid for work in (60, 1, 1)]


def erlang(stage: Stage) -> Sequence[int]:
    stage.run("erlc", stage.program("busy.erl"))
    command = ["erl", "+S", "2", "-noshell", "-noinput", "-s", "busy", "main"]
    return [stage.start(*command, ready="ready").pid]


JOBS = (
    Job(
        "java_monitor",
        Truth(
            ("lock",),
            ("writer", "java"),
            ("monitor|ObjectMonitor|put", "sleep"),
            "four threads wait for a monitor, whose holder sleeps",
        ),
        java("Cache", "-Xint"),
        JAVA_HERE,
        commands=("offcpu", "wakeup"),
    ),
    Job(
        "java_deadlock",
        Truth(
            ("deadlock", "lock"),
            ("java Transfer", "transfer-|2 .*threads"),
            ("monitor|ObjectMonitor",),
            "two threads wait for the monitor that the other one has",
        ),
        java("Transfer", "-Xint"),
        JAVA_HERE,
        commands=("offcpu", "wakeup"),
    ),
    Job(
        "java_collector",
        Truth(
            ("memory", "thread", "cpu"),
            ("java",),
            ("VM.Thread|GC|[Cc]ollect|MarkSweep|Serial|Generation",),
            "the heap is nearly full: the collector runs most of the time",
        ),
        java("Report", "-Xmx64m"),
        JAVA_HERE,
        commands=("wall",),
    ),
    Job(
        "go_journal",
        Truth(
            ("io", "lock"),
            ("journal",),
            ("appendJournal", "fsync"),
            "goroutines wait for each line to be on the disk",
        ),
        go("journal", slow_disk=True),
        GO_HERE,
    ),
    Job(
        "go_match",
        Truth(("cpu", "cores"), ("match",), ("findCustomers|regexp",), "a pattern takes long to match"),
        go("match"),
        GO_HERE,
        commands=("wall",),
    ),
    Job(
        "go_quota",
        Truth(("quota",), ("match",), ("quota",), "a control group's quota stops the program"),
        go("match", quota=15_000),
        GO_HERE,
    ),
    Job(
        "node_child",
        Truth(
            ("child",),
            ("node convert.js",),
            ("convertPicture|execFileSync|spawnSync|SyncProcessRunner", "sleep"),
            "the event loop stands still until a child has ended",
        ),
        convert,
        {"node": "nodejs"},
        commands=("offcpu", "wakeup"),
    ),
    Job(
        "node_passwords",
        Truth(
            ("cpu", "cores"),
            ("node passwords.js",),
            ("pbkdf2|PBKDF2|HMAC|sha512|SHA512",),
            "the threads of the pool compute; the event loop has nothing to do",
        ),
        passwords,
        {"node": "nodejs"},
        commands=("wall",),
    ),
    Job(
        "java_slow_service",
        Truth(
            ("peer", "network"),
            ("fetcher-", "java Prices"),
            SLOW_SERVICE,
            "four threads wait for the answers of a slow service",
        ),
        java_prices,
        {**PYTHON_HERE, **JAVA_HERE},
        commands=("offcpu", "wakeup"),
    ),
    Job(
        "go_slow_service",
        Truth(
            ("peer", "network"),
            ("prices",),
            SLOW_SERVICE,
            "goroutines, and so the thread that waits for events, wait for the answers of a slow service",
        ),
        go_prices,
        {**PYTHON_HERE, **GO_HERE},
        commands=("offcpu", "wakeup"),
    ),
    Job(
        "node_slow_service",
        Truth(
            ("peer", "network"),
            ("node prices.js",),
            SLOW_SERVICE,
            "an event loop waits for the answers of a slow service",
        ),
        node_prices,
        {**PYTHON_HERE, "node": "nodejs"},
        commands=("offcpu", "wakeup"),
    ),
    Job(
        "ruby_lock",
        Truth(
            ("gil", "lock"),
            ("4 .*threads", "ruby"),
            ("GVL|interpreter.s lock|lock|pthread_cond_wait",),
            "four threads share the interpreter's lock",
        ),
        ruby,
        {"ruby": "ruby"},
    ),
    Job(
        "perl_flock",
        Truth(
            ("file-lock",),
            ("perl nightly.pl",),
            ("flock", "sleep"),
            "two jobs wait for the lock of a file, whose holder sleeps",
        ),
        perl,
        {"perl": "perl"},
        commands=("offcpu", "wakeup"),
    ),
    Job(
        "erlang_mailbox",
        Truth(("cpu",), ("beam.smp|erl",), ("count_words|schedul|beam",), "one process of Erlang serves all others"),
        erlang,
        {"erl": "erlang-base", "erlc": "erlang-base"},
        commands=("wall",),
    ),
)
