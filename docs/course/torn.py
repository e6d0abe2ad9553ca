#!/usr/bin/env python3
"""torn.py BYTES [lock]: four processes write messages of BYTES bytes into one pipe. Counts the messages that arrive whole.

Each message consists of one letter, repeated: a message with two letters was torn apart."""
import multiprocessing
import os
import sys

WRITERS, MESSAGES = 4, 200


def write_all(fd, data):
    while data:
        data = data[os.write(fd, data):]


def writer(letter, size, write_fd, lock):
    for _ in range(MESSAGES):
        if lock:
            with lock:
                write_all(write_fd, letter * size)
        else:
            write_all(write_fd, letter * size)


def main():
    fork = multiprocessing.get_context("fork")  # children inherit the pipe
    size, lock = int(sys.argv[1]), fork.Lock() if "lock" in sys.argv[2:] else None
    read_fd, write_fd = os.pipe()
    letters = [bytes([ord("a") + k]) for k in range(WRITERS)]
    writers = [fork.Process(target=writer, args=(letter, size, write_fd, lock)) for letter in letters]
    for each in writers:
        each.start()
    os.close(write_fd)
    received = bytearray()
    while part := os.read(read_fd, 1 << 16):
        received += part
    messages = [bytes(received[k:k + size]) for k in range(0, len(received), size)]
    torn = sum(message != message[:1] * size for message in messages)
    print(f"{len(messages)} messages of {size} bytes, {'with' if lock else 'without'} a lock: {torn} torn")


main()
