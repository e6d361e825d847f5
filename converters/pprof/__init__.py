"""Profiles as pprof (gzip'd profile.proto), the format in which they are saved.

How the model maps to pprof, so that other viewers show what they can and `load` restores everything:

- a stack is written leaf first; a distinct `Frame` is a Location with one Line; a `Module` is a Mapping
  from 0 to ``size``, because addresses are ELF virtual addresses already;
- ``Frame.kind`` is in Function.system_name: ``schedule [kernel]`` beside the name ``schedule``. For native
  functions it is the name alone, so that viewers may shorten C++ names as they like;
- value types that are sums are sample values; a minimum or maximum, which viewers would add up, is a numeric label
  with its unit;
- labels are string or numeric labels; a number's unit is its key ("pid"), because viewers drop a 0 without one;
- everything else is in a field of our own, which other programs skip (`metadata`); what users should read is also in
  the comments: pprof prints them at the head of its reports;
- additional data of another program's file is kept in ``Profile.details`` and is written again: periods, mappings,
  system names, functions inlined at one address, units of labels, addresses without a name;
- strings are valid UTF-8, see `strings`.
"""

from .decoder import DEFAULT_LIMIT, load
from .encoder import save

__all__ = ["DEFAULT_LIMIT", "load", "save"]
