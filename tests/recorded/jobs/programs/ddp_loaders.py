"""Four ranks of DistributedDataParallel with two loading workers each; one rank's loaders decode slowly."""

import os
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

RANKS, SLOW = 4, 2


class Images(Dataset):
    def __init__(self, seconds):
        self.seconds = seconds

    def __len__(self):
        return 1 << 20

    def __getitem__(self, _):
        return decode_image(self.seconds)


def decode_image(seconds):
    time.sleep(seconds)
    return torch.ones(64)


def train(rank, end):
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(RANKS)}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": sys.argv[2]}
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    model = DistributedDataParallel(torch.nn.Linear(64, 64))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    images = Images(0.02 if rank == SLOW else 0.002)
    loader = iter(DataLoader(images, batch_size=4, num_workers=2))
    for step, batch in enumerate(loader):
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()
        if step == 3:
            print("ready", flush=True)
        if time.time() > end:
            os._exit(0)


if __name__ == "__main__":
    mp.spawn(train, (time.time() + float(sys.argv[1]),), nprocs=RANKS)
