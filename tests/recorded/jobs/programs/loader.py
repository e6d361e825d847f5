"""A training loop whose DataLoader has one worker, which decodes each item slowly."""

import time

import torch
from torch.utils.data import DataLoader, Dataset


class Images(Dataset):
    def __len__(self) -> int:
        return 100_000

    def __getitem__(self, index: int) -> torch.Tensor:
        return decode_image(index)


def decode_image(index: int) -> torch.Tensor:
    end = time.thread_time() + 0.01
    while time.thread_time() < end:
        index += 1
    return torch.ones(100)


def train(batch: torch.Tensor) -> None:
    batch.sum()


if __name__ == "__main__":
    torch.set_num_threads(1)
    for number, batch in enumerate(DataLoader(Images(), batch_size=4, num_workers=1)):
        train(batch)
        if number == 5:
            print("ready", flush=True)
