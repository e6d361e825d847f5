"""SystemTap, for kernels without usable BPF: the scripts of ``stap/``, compiled to a kernel module."""
