"""Three ranks of DistributedDataParallel; rank 0 brings its state to the disk after each fifth step."""

import os
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def save_checkpoint(model, moments, step):
    with open(f"step-{step % 4}.pt", "wb") as file:
        torch.save({"model": model.state_dict(), "moments": moments}, file)
        file.flush()
        os.fsync(file.fileno())


def train_step(model, optimizer):
    optimizer.zero_grad()
    model(torch.randn(4, 1024)).square().mean().backward()
    optimizer.step()


def main(end):
    dist.init_process_group("gloo")
    layers = torch.nn.Linear(1024, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 64)
    model = DistributedDataParallel(torch.nn.Sequential(*layers))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    moments = torch.randn(40_000_000)
    print("ready", flush=True)
    step = 0
    while time.time() < end:
        train_step(model, optimizer)
        step += 1
        if step % 5 == 0 and dist.get_rank() == 0:
            save_checkpoint(model.module, moments, step)


main(time.time() + float(sys.argv[1]))
