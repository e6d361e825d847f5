"""The main thread gives one file at a time to a pool of threads, and waits until it is compressed."""

import random
import zlib
from concurrent.futures import ThreadPoolExecutor

TEXT = bytes(random.Random(1).choices(b"abcdefgh \n", k=3_000_000))


def compress_file(text: bytes) -> int:
    return len(zlib.compress(text, 9))


def upload_backup(pool: ThreadPoolExecutor) -> None:
    pool.submit(compress_file, TEXT).result()


with ThreadPoolExecutor(1) as threads:
    upload_backup(threads)
    print("ready", flush=True)
    while True:
        upload_backup(threads)
