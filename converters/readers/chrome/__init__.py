"""Chrome's trace events (JSON), also written by PyTorch, viztracer and Perfetto."""
