"""Transforms: functions from a profile to a profile.

Every transform is a pure function: its input stays unchanged. Samples that become equal are added up, and the others
keep their order. A transform that changes the samples drops the timeline and the
scheduler events.
"""

from .labels import merge_processes

__all__ = ["merge_processes"]
