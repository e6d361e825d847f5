"""Loading and driving the BPF programs; scope; what a process maps."""
