"""A training loop that brings a checkpoint to the disk in every fifth step."""

import os
from itertools import count

import torch

torch.set_num_threads(1)
weights = torch.rand(200, 200)


def save_checkpoint() -> None:
    with open("checkpoint.pt", "wb") as file:
        for _ in range(3):
            file.write(bytes(200_000))
            file.flush()
            os.fsync(file.fileno())


def train_step(step: int) -> None:
    torch.tanh(weights @ weights).sum()
    if step % 5 == 0:
        save_checkpoint()


for number in count():
    train_step(number)
    if number == 10:
        print("ready", flush=True)
