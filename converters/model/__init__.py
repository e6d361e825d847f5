"""The model: produced by every reader and tracer, used by every transform and writer."""

from .profile import Profile, ThreadTimes
from .samples import Aggregate, Frame, Kind, Labels, Module, Sample, Stack, ValueType

__all__ = ["Aggregate", "Frame", "Kind", "Labels", "Module", "Profile", "Sample", "Stack", "ThreadTimes", "ValueType"]
