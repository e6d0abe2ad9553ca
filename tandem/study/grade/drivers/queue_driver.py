"""Grades a queue between processes: writers put messages, this process gets them. Queue is the class of the submission: put(bytes), get()."""
import os
import signal

LARGE = 1 << 20


def killed_writer(channel):
    """A writer that is killed in the middle of a message which is larger than any pipe."""
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        channel.put(b"k" * LARGE)
        os._exit(0)
    os.waitpid(child, 0)


def queue(messages, sizes, writers, with_kill, received, received_sizes):
    count, writers = len(messages), int(writers[0, 0])
    channel = Queue()
    if with_kill[0, 0]:
        killed_writer(channel)
    for writer in range(writers):
        if os.fork() == 0:
            status = 1
            try:
                for i in range(writer, count, writers):
                    channel.put(messages[i, :sizes[i, 0]].tobytes())
                status = 0
            finally:
                os._exit(status)
    received[...] = 0
    i = 0
    while i < count:
        message = bytes(channel.get())
        if len(message) == LARGE:  # of the killed writer, complete
            continue
        shown = message[:received.shape[1]]
        received[i, :len(shown)] = list(shown)
        received_sizes[i] = len(message)
        i += 1
    for _ in range(writers):
        os.wait()
