"""The default engine: CO-RE BPF programs through libbpf."""
