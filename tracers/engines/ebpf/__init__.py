"""The engine that is used by default: CO-RE BPF programs through libbpf."""
