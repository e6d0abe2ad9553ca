"""Messages per second through multiprocessing.Queue, with the writers and sizes of bench/process/pipe_queue_bench.cpp.

peer_python_queue.py [BUDGET_S]: one JSON line per case, {"peer", "writers", "bytes", "messages_per_s"}.
"""
import json
import multiprocessing
import sys
import time

WRITERS = (1, 8)
SIZES = (16, 4000, 65536)


def write(queue, stop, size):
    message = b"\x01" * size
    while not stop.is_set():
        queue.put(message)
    queue.put(b"")


def measure(writers, size, budget_s):
    # Bounded like the pipe, so that writers do not fill the memory.
    queue, stop = multiprocessing.Queue(1024), multiprocessing.Event()
    processes = [multiprocessing.Process(target=write, args=(queue, stop, size), daemon=True) for _ in range(writers)]
    for process in processes:
        process.start()
    for _ in range(100):  # until all writers are running
        queue.get()
    count, start = 0, time.perf_counter()
    while time.perf_counter() - start < budget_s:
        for _ in range(50):
            if len(queue.get()) != size:
                raise RuntimeError("a message has the wrong size")
        count += 50
    rate = count / (time.perf_counter() - start)
    stop.set()
    running = writers
    while running > 0:
        running -= not queue.get()
    for process in processes:
        process.join()
    return rate


if __name__ == "__main__":
    budget_s = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    for writers in WRITERS:
        for size in SIZES:
            print(json.dumps({"peer": "multiprocessing.Queue", "writers": writers, "bytes": size,
                              "messages_per_s": round(measure(writers, size, budget_s))}), flush=True)
