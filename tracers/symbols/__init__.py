"""Names for addresses: kernel, ELF files, vdso, JIT maps."""
