"""The numbers of `thresholds` that decide what is said of ranks that meet in collectives."""

from __future__ import annotations

from .threshold_types import Limit, Threshold

__all__ = [
    "CALLS_FIT",
    "CAUSES_MOST",
    "CHAINS_TOLD",
    "COMMUNICATORS_FIT",
    "COMMUNICATORS_SHOWN",
    "COUNTED_CALLS",
    "COUNTED_OFTEN",
    "KINDS_KEPT",
    "KINDS_SHOWN",
    "LATE_BEYOND",
    "LATE_BY_CHANCE",
    "LATE_ITSELF",
    "LATE_MOSTLY",
    "LATE_OF_TWO",
    "LINKS_TOLD",
    "MEETINGS",
    "MEETINGS_SHOWN",
    "MOST_RANKS",
    "PAIRS_FIT",
    "POLLS_ELSEWHERE",
    "PROCESSES_FIT",
    "RANKS_APART",
    "RANKS_OUTSIDE",
    "RUNS_MORE",
    "RUNS_PART",
    "STACKS_KNOWN",
    "STANDS_LEAST",
    "STANDS_STILL",
    "WORST_MEETINGS",
]

# Which ranks meet, if that is not known.
CALLS_FIT = Limit(4, "calls of two ranks", "Fewer may fit by chance.")
COMMUNICATORS_FIT = Limit(2048, "communicators of processes", "To look for pairs of more takes seconds.")
PAIRS_FIT = Limit(32_768, "pairs of communicators", "To compare more takes longer than ten seconds.")
PROCESSES_FIT = Limit(2, "processes", "The memory of one has nothing in common with another's.")
MOST_RANKS = Limit(65_536, "ranks of a communicator", "A larger number in its memory is something else.")
COUNTED_OFTEN = Limit(3, "times that memory is read", "A word may be so much more than the calls by chance.")
COUNTED_CALLS = Limit(4, "calls between these times", "A word that nothing changes counts no calls.")
RANKS_APART = Limit(64, "calls", "Ranks are not further apart where a trace begins.")

# When ranks stand still.
STANDS_STILL = Threshold(5, "times the longest step", "A collective that takes no longer may still end by itself.")
STANDS_LEAST = Threshold(0.5, "seconds", "A rank that is late for less has not stopped.")

STACKS_KNOWN = Threshold(
    0.9, "share of its time", "Of a thread with less in known places, it may be what others wait for."
)
POLLS_ELSEWHERE = Threshold(0.01, "share of its time", "A library that polls waits for its own locks now and then.")

# Who is late.
MEETINGS = Threshold(10, "meetings", "Fewer show no rank that is always late.")
LATE_MOSTLY = Threshold(0.5, "share of the meetings", "Who comes last to fewer is one of several who take turns.")
LATE_OF_TWO = Threshold(0.8, "share of the meetings", "Of two ranks, one comes last to half of them by chance.")
LATE_BEYOND = Threshold(3, "times the MAD", "A lateness within that is the scatter of all ranks.")
CAUSES_MOST = Threshold(0.5, "share of the waits", "Ranks for which others wait for less are several, by turns.")
LATE_BY_CHANCE = Threshold(0.001, "probability", "Equal ranks look so in more than one of 1,000 runs.")

# Why it is late.
LATE_ITSELF = Threshold(
    0.2, "share of its lateness", "Who does less than that beyond the others was kept in the operation before."
)
RUNS_MORE = Threshold(
    0.5, "times what the others run", "A rank that runs for less beyond that is late for other reasons."
)
RUNS_PART = Threshold(0.15, "share of its excess", "Who runs for less of it has others on its core, not more to do.")

# How much is shown and kept.
COMMUNICATORS_SHOWN = Limit(3, "communicators", "More are in the JSON.")
KINDS_SHOWN = Limit(3, "operations", "More of a communicator are in the JSON.")
KINDS_KEPT = Limit(1000, "operations", "More of a communicator, those of least time, are not kept.")
CHAINS_TOLD = Limit(1, "ranks", "For whom more of them wait, the table tells.")
LINKS_TOLD = Limit(3, "threads and processes", "A sentence on more of a chain of waits cannot be read.")
RANKS_OUTSIDE = Limit(3, "ranks", "More of those that are missing in a collective are counted only.")
MEETINGS_SHOWN = Limit(100, "meetings", "More of those with the longest spread are not in the JSON.")
WORST_MEETINGS = Limit(1000, "meetings", "More of those with the longest spread are not kept one by one.")
