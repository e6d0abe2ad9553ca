#!/usr/bin/env python3
"""gil.py [WORKERS]: the same Python loop in threads and in processes, and how many CPUs they kept busy at the same time.

CPUs busy = CPU seconds used by all workers, divided by the seconds that passed. Threads stay at 1 while the interpreter has its lock (GIL)."""
import multiprocessing
import os
import sys
import threading
import time


def checksum(pixels):
    """Plain Python: every step of the loop needs the interpreter."""
    total = 0
    for _ in range(100):
        for value in pixels:
            total = (total * 31 + value) % 65521
    return total


def cpu_seconds():
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def cpus_busy(make_worker, count):
    pixels = list(range(20000))
    workers = [make_worker(target=checksum, args=(pixels,)) for _ in range(count)]
    cpu, wall = cpu_seconds(), time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return (cpu_seconds() - cpu) / (time.perf_counter() - wall)


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    locked = getattr(sys, "_is_gil_enabled", lambda: True)()
    print(f"Python {sys.version.split()[0]}, GIL {'on' if locked else 'off'}, {len(os.sched_getaffinity(0))} CPUs, {count} workers")
    print(f"threads:   {cpus_busy(threading.Thread, count):.1f} CPUs busy")
    print(f"processes: {cpus_busy(multiprocessing.Process, count):.1f} CPUs busy")


main()
