"""Asks NVIDIA's driver what its GPUs do (NVML), in a process that can be left alone when the driver hangs."""
