"""Names for addresses: of the kernel, of ELF files, of JIT code, of processes that have exited."""
