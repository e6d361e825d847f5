"""Plan of the checks for each kernel, and of the engine that each of them is about."""

from __future__ import annotations

from kernels import KERNELS, Kernel

SHORT = ("load", "doctor", "truth", "stacks")
TOGETHER = WITHOUT_DOCTOR = ("load", "truth", "stacks")
"""Checks for `make test`, which share a guest: trace-doctor takes a minute, so it is asked in one guest only."""
LONG = (
    *("wall", "ioctl", "calls", "func", "collectives", "wakeup", "locks", "objects", "timeline", "quota", "python"),
    *("everything", "demo", "storms", "command", "peer", "wheel"),
)
REFUSED = ("refused",)
"""Checks of the probes where they do not run."""
NO_BPF = ("no_bpf", "auto_stap", "auto_perf")
"""Checks where there is no BPF at all: what auto does then."""
TOO_OLD = ("5.10",)
WITHOUT_BPF = ("5.15-nobpf", "6.1-nobpf")
BRIEF = ("everything", "demo")
SAME_AS_ANOTHER = ("6.1-cloud",)
"""Another build of a kernel that is there in full."""
ASKED = ("ask",)
WITH_ASKED = ("5.15", "6.1")
"""Kernels on which bcc's programs are run."""
BESIDE_LIBBPF = ("stap", "stap_ioctl", "stap_wakeup", "stap_cuda")
SYSTEMTAP = ("stap_clock", "stap_storm", "stap_deep", "stap_killed", "stap_waits")
PLAIN_SYSTEMTAP = ("stap_plain",)
WITH_PLAIN_SYSTEMTAP = ("5.10",)
"""Kernels that need no correction of Debian 12's SystemTap."""
WITH_OWN_SYSTEMTAP = ("6.12", "7.2")
"""Kernels for which Debian 12's SystemTap and compiler cannot make modules: those of their own suites do."""
WITH_SYSTEMTAP = ("5.10", "5.15", "6.1", *WITH_OWN_SYSTEMTAP)
NO_SYSTEMTAP = ("no_stap",)
"""The engine is asked on the host, whose compiler cannot do it: no guest is booted."""
DRIVER = ("nvidia", "nvidia_holder")
"""Checks in a driver of our own; the first one is in the short set, too."""
DRIVER_BESIDE = ("nvidia_stap",)
WITH_DRIVER = ("6.1",)
"""Kernels for which this system's compiler makes modules."""
BCC = ("bcc",)
WITHOUT_STOPS = ("perf", "eu_stack")
"""Engines that take nothing of the kernel but perf, or nothing at all."""

ENGINES: dict[str, tuple[str, ...]] = {
    "libbpf": ("load", "doctor", "truth", "stacks", *LONG, *DRIVER),
    "bcc": ("bcc", "ask"),
    "stap": (*BESIDE_LIBBPF, *DRIVER_BESIDE, *SYSTEMTAP, *PLAIN_SYSTEMTAP, "auto_stap"),
    "perf": ("perf", "auto_perf"),
    "eu-stack": ("eu_stack",),
}
"""Checks that say whether an engine works, by engine."""
REFUSALS: dict[str, tuple[str, ...]] = {"refused": ("libbpf",), "no_bpf": ("libbpf", "bcc"), "no_stap": ("stap",)}
"""Engines that a check finds refused, as they have to be, by check: no_stap with another suite's compiler."""

ALL = tuple(
    dict.fromkeys(
        (
            *(*SHORT, *LONG, *REFUSED, *NO_BPF, *BESIDE_LIBBPF, *SYSTEMTAP, *PLAIN_SYSTEMTAP, *NO_SYSTEMTAP),
            *(*DRIVER, *DRIVER_BESIDE, *ASKED, *BCC, *WITHOUT_STOPS),
        )
    )
)


def checks_of(kernel: Kernel, *, short: bool) -> tuple[str, ...]:
    """The names of the checks that a kernel has to pass."""
    driver = DRIVER + DRIVER_BESIDE if kernel.name in WITH_DRIVER else ()
    if short:
        of_all = SHORT + driver[:1] if driver else WITHOUT_DOCTOR
        return of_all if kernel.short else ()
    if kernel.name in SAME_AS_ANOTHER:
        return SHORT + BRIEF
    if kernel.name in WITHOUT_BPF:
        return NO_BPF + WITHOUT_STOPS
    own = REFUSED if kernel.name in TOO_OLD else SHORT + LONG
    systemtap = SYSTEMTAP if kernel.name in WITH_SYSTEMTAP else ()
    if systemtap and kernel.name not in TOO_OLD:
        systemtap = BESIDE_LIBBPF + systemtap
    systemtap += PLAIN_SYSTEMTAP if kernel.name in WITH_PLAIN_SYSTEMTAP else ()
    if kernel.name in WITH_OWN_SYSTEMTAP:
        systemtap += NO_SYSTEMTAP
    asked = ASKED if kernel.name in WITH_ASKED else ()
    return own + systemtap + driver + asked + BCC + WITHOUT_STOPS


def short_guests() -> list[tuple[str, tuple[str, ...]]]:
    """The short set by guest: the kernel, and the checks that run in it one after the other."""
    found = []
    for kernel in KERNELS:
        checks = checks_of(kernel, short=True)
        parts = [[check for check in checks if (check in TOGETHER) is first] for first in (True, False)]
        found += [(kernel.name, tuple(part)) for part in parts if part]
    return found
