"""Tracepoint programs that bcc compiles when they are wanted: for kernels with BPF but without BTF."""
