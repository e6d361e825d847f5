"""Two ranks of PyTorch with gloo on this machine add up a tensor in each step; rank 1 reads its data slowly."""

import os
import sys
import tempfile
import time

import torch
import torch.distributed
import torch.multiprocessing


def rank(number: int, address: str) -> None:
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=address, rank=number, world_size=2)
    weights = torch.ones(1000)
    while True:
        if number == 1:
            time.sleep(0.05)
        torch.distributed.all_reduce(weights)
        weights /= 2


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        context = torch.multiprocessing.spawn(rank, (f"file://{folder}/store",), nprocs=2, join=False)
        time.sleep(4)
        print(*context.pids(), flush=True)
        sys.stdin.read()
        for pid in context.pids():
            os.kill(pid, 9)
