"""Trains a model whose steps keep the GPU busy: the program waits for the loss of each."""

import sys
import time

import torch

torch.manual_seed(0)
model = torch.nn.Sequential(*[torch.nn.Linear(8192, 8192) for _ in range(4)]).cuda()
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
batch = torch.randn(8192, 8192, device="cuda")


def train_step():
    loss = model(batch).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return log_loss(loss)


def log_loss(loss):
    return loss.item()


end = time.time() + float(sys.argv[1])
while time.time() < end:
    train_step()
