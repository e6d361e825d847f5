"""Hosts with threads that may only wait for work: who ended their waits is recorded."""

from __future__ import annotations

from stallscope.converters.facts.idle_evidence import idle_by_evidence
from stallscope.converters.facts.wait_sums import add_up_waits, merged_threads
from stallscope.converters.model import Profile, Stack, ThreadTimes
from stallscope.converters.model.waits_for import waits_for
from summary_profiles import EPOLL, EXE, FUTEX, LIBC, MS, SECOND, kernel, user
from wait_graphs import Link, chained, profile_of, with_extremes

SLEEP: Stack = (*user(EXE, "main", "tick"), *user(LIBC, "nanosleep"), *kernel("do_nanosleep"))
LOOP: Stack = (*user(EXE, "main", "serve"), *user(LIBC, "epoll_wait"), *EPOLL)
POOL: Stack = (*user(EXE, "start", "take_work"), *user(LIBC, "pthread_cond_wait"), *FUTEX)
TIMER: Link = ("[timer]", 0, "")
NETWORK: Link = ("[softirq NET_RX]", 0, "")
NOBODY: Link = ("[still waiting]", 0, "")
MAIN: Link = ("app-7", 7, "app")
CLIENT: Link = ("client-20", 20, "client")


class Host:
    """Threads of 1 s that are on a core whenever they do not wait."""

    def __init__(self) -> None:
        self.profile = with_extremes(profile_of())

    def wait(self, pid: int, tid: int, own: Stack, ms: int, *chain: Link, each: int = 0, longest: int = 0) -> Host:
        """``each``: how long a wait is, in ms."""
        number = ms // each if each else 1
        values = ms * MS, number, MS, (longest or each or ms) * MS
        self.profile.samples.append(chained(pid, tid, ms * MS, *chain, own=own)._replace(values=values))
        return self

    def made(self) -> Profile:
        blocked: dict[tuple[int, int], int] = {}
        for sample in self.profile.samples:
            key = int(sample.label("pid") or 0), int(sample.label("tid") or 0)
            blocked[key] = blocked.get(key, 0) + sample.values[0]
        self.profile.threads = [
            ThreadTimes(pid, f"p{pid}", tid, f"t{tid}", SECOND, SECOND - time, 0, {"interruptible": time})
            for (pid, tid), time in blocked.items()
        ]
        return self.profile


def kinds(profile: Profile) -> dict[int, str]:
    """Kinds of evidence by tid."""
    threads = merged_threads(profile.threads)
    sums = add_up_waits(profile, threads)
    found = idle_by_evidence(sums, threads, waits_for(profile))
    return {tid: evidence.kind for (_, tid), evidence in found.items()}
