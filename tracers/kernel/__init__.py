"""libbpf through ctypes, and the BPF programs' data: objects, maps, records, and the shapes in which they load."""
