"""Multiplies matrices; how many threads do it is in the environment."""

import numpy as np

matrix = np.random.default_rng(1).random((700, 700))


def train_step() -> None:
    matrix @ matrix


train_step()
print("ready", flush=True)
while True:
    train_step()
