"""Runs tandem under the fault library (fault_library.cpp), and checks what a run has left behind."""
import ctypes
import hashlib
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import zlib

KINDS = ["open", "create", "read", "write", "fsync", "rename", "truncate", "mkdir", "mmap", "spawn", "pipe", "thread", "memory"]
FAIL, FAIL_FROM_HERE_ON, HALF, KILL, HALF_AND_KILL = range(5)
DISTURBANCES = ["delayed_permille", "max_delay_ms", "delays", "delayed_ms", "clock_shift_s", "shifted_readings"]
STATE = struct.Struct(f"=iiiiqqq{len(KINDS)}q{len(DISTURBANCES)}q")  # State in fault_library.cpp
PR_SET_CHILD_SUBREAPER = 36
TEMPORARY = re.compile(r"\.tandem-.*\.tmp$|^tandem-[A-Za-z0-9]{6}$")


class Outcome:
    def __init__(self, status, out, err, counts, fired, orphans, hung):
        self.status, self.out, self.err, self.counts, self.fired = status, out, err, counts, fired
        self.orphans, self.hung = orphans, hung

    def errors(self):
        return [line for line in self.err.splitlines() if line.startswith("tandem: error: ")]

    def problem(self):
        """What is wrong with how it ended: neither success nor an error of one line."""
        if self.hung:
            return "hangs"
        if self.orphans:
            return f"leaves {self.orphans} processes"
        if self.status == 0:
            return f"succeeds with an error: {self.errors()}" if self.errors() else None
        if self.status < 0:
            return f"is ended by signal {-self.status}: {self.err[-300:]}"
        lines = [line for line in self.err.splitlines() if line.strip()]
        if self.status == 1 and lines and lines[-1].startswith("libgomp: ") and not self.errors():
            return None  # OpenMP ends the process itself, and says why in one line
        if len(self.errors()) != 1 or lines[-1] != self.errors()[0]:
            return f"ends with status {self.status} and {len(self.errors())} errors: {self.err[-300:]}"
        if "internal error" in lines[-1] or "std::" in lines[-1]:
            return f"does not say what failed: {lines[-1]}"
        return None


class Runner:
    """One at a time: it adopts and ends what its children leave behind."""

    def __init__(self, program, library, scratch):
        self.program, self.library, self.scratch = program, library, scratch
        self.temporary = os.path.join(scratch, "tmp")
        os.makedirs(self.temporary, exist_ok=True)
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

    def run(self, words, folder, kind=None, at=0, action=FAIL, error=0, min_bytes=4096, log=None, timeout=60, program=None,
            stdout=None, stderr=None, after_start=None):
        state = os.path.join(self.scratch, "state")
        with open(state, "wb") as file:
            file.write(STATE.pack(KINDS.index(kind) if kind else -1, action, error, 0, at, min_bytes, 0, *[0] * (len(KINDS) + len(DISTURBANCES))))
        environment = dict(os.environ, LD_PRELOAD=self.library, TANDEM_FAULTS=state, TMPDIR=self.temporary, TANDEM_CACHE=os.path.join(folder, "cache"),
                           OMP_NUM_THREADS="2", OMP_WAIT_POLICY="passive")
        if log:
            environment.update(TANDEM_FAULT_LOG=log[0], TANDEM_FAULT_FOLDER=log[1])
        out_path, err_path = os.path.join(self.scratch, "out"), os.path.join(self.scratch, "err")
        with open(out_path, "wb") as out, open(err_path, "wb") as err:
            process = subprocess.Popen([program or self.program, *words], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                                       stdout=stdout or out, stderr=stderr or err, start_new_session=True)
            if after_start:
                after_start(process)
            try:
                status, hung = process.wait(timeout), False
            except subprocess.TimeoutExpired:
                status, hung = None, True
                process.send_signal(signal.SIGKILL)
                process.wait()
        orphans = self.adopt()
        with open(state, "rb") as file:
            values = STATE.unpack(file.read(STATE.size))
        with open(out_path, errors="replace") as out, open(err_path, errors="replace") as err:
            return Outcome(status, out.read(), err.read(), dict(zip(KINDS, values[7:])), values[6], orphans, hung)

    def adopt(self, patience_s=5):
        """Waits for the processes that were left behind; -> how many had to be killed."""
        killed, until = 0, time.monotonic() + patience_s
        while True:
            try:
                pid, _ = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return killed
            if pid == 0 and time.monotonic() > until:
                for pid in own_children():
                    os.kill(pid, signal.SIGKILL)
                    killed += 1
                until += 1
            elif pid == 0:
                time.sleep(0.002)

    def leftovers(self, folder):
        """Temporary files in the folder and in TMPDIR."""
        found = [os.path.join(where, name) for where, folders, files in os.walk(folder) for name in folders + files if TEMPORARY.search(name)]
        return found + os.listdir(self.temporary)


def scratch_folder():
    """In memory where possible: what a disk does is simulated, and syncing would take most of the time. SIGTERM raises SystemExit, so that it is removed."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    memory = "/dev/shm"
    fits = os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 2**30
    return tempfile.mkdtemp(prefix="check-faults-", dir=memory if fits else None)


def own_children():
    with open(f"/proc/self/task/{os.getpid()}/children") as file:
        return [int(word) for word in file.read().split()]


# ---- data

def idx(path, shape, data):
    with open(path, "wb") as file:
        file.write(struct.pack(f">HBB{len(shape)}I", 0, 8, len(shape), *shape) + data)


def write_digits(folder, train=40, test=10):
    """Images of 28x28 pixels in which a bright bar tells the class."""
    os.makedirs(folder)
    for part, count, seed in (("train", train, 1), ("t10k", test, 2)):
        labels = bytes((i * 7 + seed) % 10 for i in range(count))
        pixels = bytes((200 if row // 3 == label else 0) + (i * 31 + row * 17 + column * seed) % 50
                       for i, label in enumerate(labels) for row in range(28) for column in range(28))
        idx(os.path.join(folder, f"{part}-images-idx3-ubyte"), (count, 28, 28), pixels)
        idx(os.path.join(folder, f"{part}-labels-idx1-ubyte"), (count,), labels)


def png(width, height, rgb):
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    rows = b"".join(b"\0" + bytes(rgb(x, y)[c] for x in range(width) for c in range(3)) for y in range(height))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def write_photos(folder, per_class=6, size=16):
    for label, name in enumerate(("cold", "warm")):
        os.makedirs(os.path.join(folder, name))
        for i in range(per_class):
            with open(os.path.join(folder, name, f"{i}.png"), "wb") as file:
                file.write(png(size, size, lambda x, y: ((x * 8 + i * 16) % 256 if label else 20, y * 8 % 256, 20 if label else (x * 8 + i) % 256)))


# ---- files of a run

def read_tensors(data):
    """The f32 tensors of a safetensors file by name; ValueError for one that is not whole."""
    if len(data) < 8:
        raise ValueError("no header")
    length = struct.unpack("<Q", data[:8])[0]
    if length > len(data) - 8:
        raise ValueError("the header is cut off")
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__", None)
    body = data[8 + length:]
    if max((entry["data_offsets"][1] for entry in header.values()), default=0) != len(body):
        raise ValueError("the tensors are cut off")
    return {name: body[slice(*entry["data_offsets"])] for name, entry in header.items() if entry["dtype"] == "F32"}


def read_checkpoint(data):
    frame, payload = data[:104], data[104:]
    if frame[:24] != b"TandemCheckpoint00000001" or int(frame[24:40], 16) != len(payload):
        raise ValueError("not a whole checkpoint")
    if hashlib.sha256(payload).hexdigest().encode() != frame[40:]:
        raise ValueError("the digest differs")
    return read_tensors(payload)


def check_events(data):
    """Whole records, then at most one that is cut off."""
    while len(data) >= 12:
        length = struct.unpack("<Q", data[:8])[0]
        if len(data) < length + 16:
            return
        data = data[length + 16:]


def check_page(data):
    if not data.rstrip().endswith(b"</html>"):
        raise ValueError("the page is cut off")


READERS = {"best.safetensors": read_tensors, "last.ckpt": read_checkpoint, "previous.ckpt": read_checkpoint, "report.html": check_page,
           "report.json": json.loads, "status.json": json.loads, "data.json": json.loads, "config.toml": lambda data: data.decode() or 1 / 0}


def damaged_files(run, names=READERS):
    """The files of a run folder that are there and not whole."""
    found = []
    for name in names:
        path = os.path.join(run, name)
        if not os.path.exists(path):
            continue
        with open(path, "rb") as file:
            data = file.read()
        try:
            READERS[name](data)
        except (ValueError, ZeroDivisionError, KeyError) as error:
            found.append(f"{name}: {error}")
    return found


def weights(run):
    """What must be the same bits after every run: the kept model, and the weights and the optimizer of the last checkpoint."""
    with open(os.path.join(run, "best.safetensors"), "rb") as best, open(os.path.join(run, "last.ckpt"), "rb") as last:
        return best.read(), read_checkpoint(last.read())


def fresh_copy(source, target):
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target, symlinks=True)
