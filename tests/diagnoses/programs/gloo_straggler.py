"""Two ranks of PyTorch with gloo on this machine add up a tensor in each step; rank 1 reads its data slowly."""

import os
import sys
import tempfile
import time
from multiprocessing.synchronize import Event

import torch
import torch.distributed
import torch.multiprocessing


def rank(number: int, address: str, going: Event) -> None:
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=address, rank=number, world_size=2)
    weights = torch.ones(1000)
    while True:
        if number == 1:
            time.sleep(0.05)
        torch.distributed.all_reduce(weights)
        weights /= 2
        going.set()


if __name__ == "__main__":
    going = torch.multiprocessing.get_context("spawn").Event()
    with tempfile.TemporaryDirectory() as folder:
        context = torch.multiprocessing.spawn(rank, (f"file://{folder}/store", going), nprocs=2, join=False)
        going.wait(60)
        time.sleep(0.5)
        print(*context.pids(), flush=True)
        sys.stdin.read()
        for pid in context.pids():
            os.kill(pid, 9)
