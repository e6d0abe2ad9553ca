"""Takes memory away from running processes: by a cgroup (v2) with limits where one can be made, else by asking the kernel to page out what they have mapped."""
import ctypes
import os

PIDFD_OPEN, PROCESS_MADVISE, MADV_PAGEOUT = 434, 440, 21  # the numbers are those of every architecture
MARGIN = 16 << 20


class Range(ctypes.Structure):
    _fields_ = [("start", ctypes.c_void_p), ("size", ctypes.c_size_t)]


def read(*path):
    try:
        with open(os.path.join(*path)) as file:
            return file.read()
    except OSError:
        return ""


def write(text, *path):
    with open(os.path.join(*path), "w") as file:
        file.write(str(text))


def cgroup_parents():
    """The cgroups from that of this process up to the root, as far as they are mounted here."""
    own = [line[3:] for line in read("/proc/self/cgroup").splitlines() if line.startswith("0::")]
    for line in read("/proc/self/mountinfo").splitlines():
        words = line.split()
        if own and words[words.index("-") + 1] == "cgroup2":
            path, root = own[0].strip("/"), words[4]
            while True:
                yield os.path.join(root, path)
                if not path:
                    break
                path = os.path.dirname(path)


class Cgroup:
    """A cgroup for the run. A squeeze leaves it what cannot be reclaimed and a few megabytes: files are read again and again."""
    name = "cgroup"

    def __init__(self):
        for parent in cgroup_parents():
            folder = os.path.join(parent, f"tandem-soak-{os.getpid()}")
            if "memory" not in read(parent, "cgroup.subtree_control").split():
                continue
            try:
                os.mkdir(folder)
                self.folder = folder
                return
            except OSError:
                continue
        raise OSError("no cgroup with a memory controller can be made here")

    def add(self, pid):
        write(pid, self.folder, "cgroup.procs")

    def squeeze(self, _pids, _files):
        facts = dict(line.split() for line in read(self.folder, "memory.stat").splitlines())
        needed = sum(int(facts.get(name, 0)) for name in ("anon", "shmem", "kernel", "sock"))
        write(needed + MARGIN, self.folder, "memory.high")
        write(needed + 4 * MARGIN, self.folder, "memory.max")
        return f"memory.high {(needed + MARGIN) >> 20} MiB of {int(read(self.folder, 'memory.current') or 0) >> 20} MiB"

    def release(self):
        write("max", self.folder, "memory.max")
        write("max", self.folder, "memory.high")

    def events(self):
        """How often the limits were met, as the kernel counts it."""
        return ", ".join(f"{name} {count}" for name, count in (line.split() for line in read(self.folder, "memory.events").splitlines()) if name != "low")

    def close(self):
        os.rmdir(self.folder)


class Pageout:
    """Without limits: a squeeze pages out the mapped files and drops the pages of the files that are read."""
    name = "page-out"

    def __init__(self):
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.taken = 0
        self.page_out(os.getpid())

    def page_out(self, pid):
        descriptor = self.libc.syscall(PIDFD_OPEN, pid, 0)
        if descriptor < 0:
            return
        try:
            for line in read("/proc", str(pid), "maps").splitlines():
                words = line.split()
                start, end = (int(word, 16) for word in words[0].split("-"))
                if len(words) < 6 or not words[5].startswith("/"):
                    continue
                part = Range(start, end - start)
                done = self.libc.syscall(PROCESS_MADVISE, descriptor, ctypes.byref(part), ctypes.c_size_t(1), MADV_PAGEOUT, 0)
                if done < 0 and ctypes.get_errno() in (1, 38):
                    raise OSError(ctypes.get_errno(), "pages of another process cannot be paged out here")
                self.taken += max(done, 0)
        finally:
            os.close(descriptor)

    def add(self, _pid):
        pass

    def squeeze(self, pids, files):
        before = self.taken
        for pid in pids:
            self.page_out(pid)
        for path in files:
            try:
                descriptor = os.open(path, os.O_RDONLY)
            except OSError:
                continue
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)
        return f"{(self.taken - before) >> 20} MiB of mappings paged out"

    def release(self):
        pass

    def events(self):
        return f"{self.taken >> 20} MiB of mappings"

    def close(self):
        pass


def make_pressure():
    """-> the strongest kind that this machine allows, and why it is not a cgroup; None if there is none."""
    reason = ""
    for kind in (Cgroup, Pageout):
        try:
            return kind(), reason
        except OSError as error:
            reason = str(error)
    return None, reason
