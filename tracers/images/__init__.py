"""What a process maps: files, ELF, symbol tables, debug files, the vdso."""
