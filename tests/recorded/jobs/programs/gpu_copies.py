"""Copies from the GPU to memory that is new, and not pinned, each time."""

import sys
import time

import torch

activations = torch.randn(64 << 20, device="cuda")


def save_activations():
    return activations.cpu()


end = time.time() + float(sys.argv[1])
while time.time() < end:
    save_activations()
