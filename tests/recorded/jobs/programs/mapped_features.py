"""Looks up features in a mapped file that does not fit into the memory of its control group."""

from itertools import count

import numpy as np

features = np.memmap("features.bin", dtype=np.uint8, mode="r")
places = np.random.default_rng(1).integers(0, len(features), 1_000_000)


def look_up_feature(place: int) -> int:
    return int(features[place])


total = 0
for number in count():
    total += look_up_feature(places[number % len(places)])
    if number == 2000:
        print("ready", flush=True)
