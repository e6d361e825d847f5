"""A rank of a job on one GPU, with one trouble: gpu_ranks.py CAUSE, in which RANK, WORLD_SIZE, MASTER_ADDR and
MASTER_PORT are set. Several ranks on one GPU need NCCL 2.30 and NCCL_MULTI_RANK_GPU_ENABLE=1. It ends when its standard
input does; ``CAUSE`` is loader, checkpoint, busy, missing, graph or pipeline."""

from __future__ import annotations

import os
import queue
import sys
import tempfile
import threading
import time

import torch
import torch.distributed as dist

CAUSE, RANK, SIZE = sys.argv[1], int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


def read_shard() -> None:
    time.sleep(0.03)


def load_batch() -> None:
    if CAUSE == "loader" and RANK == 2:
        read_shard()


def augment() -> None:
    end = time.monotonic() + 0.02
    while time.monotonic() < end:
        sum(range(1000))


def save_checkpoint() -> None:
    with tempfile.TemporaryFile() as file:
        file.write(bytes(32 << 20))
        file.flush()
        os.fsync(file.fileno())


def train_step(number: int, weights: torch.Tensor, grads: torch.Tensor) -> None:
    load_batch()
    loss = (weights @ weights).sum()
    if CAUSE == "busy" and RANK == 1:
        augment()
    if CAUSE == "checkpoint" and RANK == 0:
        save_checkpoint()
    if CAUSE == "missing" and RANK == 1 and number == 60:
        queue.Queue[int]().get()
    dist.all_reduce(grads)
    torch.cuda.synchronize()
    loss.item()


def stage(weights: torch.Tensor, grads: torch.Tensor) -> None:
    """A stage of a pipeline: it takes what the rank before sends, and hands it on."""
    if RANK:
        dist.recv(grads, RANK - 1)
    if RANK == 1:
        read_shard()
    weights.matmul(weights)
    if RANK + 1 < SIZE:
        dist.send(grads, RANK + 1)
    torch.cuda.synchronize()


def captured(grads: torch.Tensor) -> torch.cuda.CUDAGraph:
    dist.all_reduce(grads)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        dist.all_reduce(grads)
    dist.barrier()
    return graph


def main() -> None:
    torch.cuda.set_device(0)
    dist.init_process_group("nccl")
    weights = torch.randn(1024, 1024, device="cuda")
    grads = torch.ones(1 << 20, device="cuda")
    graph = captured(grads) if CAUSE == "graph" else None
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set(), os._exit(0)), daemon=True).start()
    number = 0
    while not ended.is_set():
        if graph:
            graph.replay()
            torch.cuda.synchronize()
        elif CAUSE == "pipeline":
            stage(weights, grads)
        else:
            train_step(number, weights, grads)
        number += 1


main()
