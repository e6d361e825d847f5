"""Multiplies matrices with more threads than there are cores."""

import torch

torch.set_num_threads(8)
weights = torch.rand(600, 600)


def train_step() -> None:
    torch.tanh(weights @ weights)


train_step()
print("ready", flush=True)
while True:
    train_step()
