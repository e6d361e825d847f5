"""A pool of processes gets four tasks, of which one takes much longer; the main process waits for all."""

import multiprocessing
import time


def simulate(seconds: float) -> int:
    end, number = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        number += 1
    return number


def run_simulations(pool: "multiprocessing.pool.Pool") -> None:
    pool.map(simulate, [0.02, 0.02, 0.02, 0.6], chunksize=1)


if __name__ == "__main__":
    with multiprocessing.Pool(3) as workers:
        run_simulations(workers)
        print("ready", flush=True)
        while True:
            run_simulations(workers)
