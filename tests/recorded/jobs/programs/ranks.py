"""A rank of a job with gloo: its number, how many there are, and how the last one waits for its data."""

import os
import sys
import time

import torch
import torch.distributed as dist

number, size, how = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
torch.set_num_threads(1)
dist.init_process_group("gloo", init_method="file://" + os.path.abspath("store"), rank=number, world_size=size)
gradients = torch.ones(1000)


def load_shard() -> None:
    """Loads what makes the last rank late."""
    end = time.monotonic() + 0.05
    while how == "yield" and time.monotonic() < end:
        os.sched_yield()
    if how == "sleep":
        time.sleep(0.05)


def train_step() -> None:
    if number == size - 1:
        load_shard()
    dist.all_reduce(gradients)
    gradients.div_(size)


step = 0
while True:
    train_step()
    step += 1
    if step == 10:
        print("ready", flush=True)
