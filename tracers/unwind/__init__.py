"""Rules to unwind native stacks without frame pointers, compiled from DWARF call frame information."""
