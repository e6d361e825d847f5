"""Two processes fetch records into a short queue; the main process, which parses them, is too slow."""

import json
import multiprocessing


def fetch_records(queue: "multiprocessing.Queue[str]") -> None:
    text = json.dumps({f"field{number}": [number] * 20 for number in range(400)})
    while True:
        queue.put(text)


def parse_record(text: str) -> int:
    return sum(len(json.dumps(json.loads(text), indent=1)) for _ in range(4))


if __name__ == "__main__":
    records: "multiprocessing.Queue[str]" = multiprocessing.Queue(2)
    for _ in range(2):
        multiprocessing.Process(target=fetch_records, args=(records,), daemon=True).start()
    seen = 0
    while True:
        parse_record(records.get())
        seen += 1
        if seen == 10:
            print("ready", flush=True)
