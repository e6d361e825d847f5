"""Files that a process maps: ELF, symbol tables, debug files, the vdso."""
