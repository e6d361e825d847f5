"""``perf record``, for hosts that allow perf and not bpf."""
