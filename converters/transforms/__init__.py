"""Profile in, profile out: what can be done to a profile between its source and its output.

Every transform is a pure function: the profile that it is given stays as it was. Samples that are equal afterwards are
added up, and the order of the others stays. What changes the samples drops the timeline.
"""

from .labels import merge_processes

__all__ = ["merge_processes"]
