"""Rebuilds a folder as a disk may have it after a power failure, from the log of file_log.cpp.

Only what was synced is certain: the bytes of a file since its last fsync, and the names in a folder since the fsync of that folder. Of the rest a
file system may have all, nothing or a part, or the length of a file without its bytes.
"""
import os


class Inode:
    def __init__(self):
        self.data, self.synced = bytearray(), b""

    def content(self, variant):
        if variant == "synced":
            return self.synced
        if variant == "all":
            return bytes(self.data)
        if variant == "zeros":
            return self.synced[:len(self.data)] + bytes(max(0, len(self.data) - len(self.synced)))
        return bytes(self.data[:(len(self.synced) + len(self.data) + 1) // 2])  # torn


class Disk:
    VARIANTS = [("synced", "synced"), ("synced", "all"), ("all", "synced"), ("all", "zeros"), ("all", "torn"), ("all", "all")]

    def __init__(self, root):
        self.root = root
        self.inodes, self.folders = {}, {os.stat(root).st_ino: root}
        self.names, self.synced_names = {}, {}  # path -> Inode, or None for a folder

    def apply(self, words, data):
        kind, rest = words[0], words[2:]
        if kind in "CWTSD":
            number, _, rest = rest.partition(" ")
            number = int(number)
        if kind == "C":
            self.inodes[number] = self.names[rest] = Inode()
        elif kind == "W" and number in self.inodes:
            offset, inode = int(rest.split()[0]), self.inodes[number]
            inode.data.extend(bytes(max(0, offset - len(inode.data))))
            inode.data[offset:offset + len(data)] = data
        elif kind == "T" and number in self.inodes:
            inode, size = self.inodes[number], int(rest)
            inode.data = inode.data[:size] + bytes(max(0, size - len(inode.data)))
        elif kind == "S" and number in self.inodes:
            self.inodes[number].synced = bytes(self.inodes[number].data)
        elif kind == "S" and number in self.folders:
            self.sync_names(self.folders[number])
        elif kind == "D":
            self.folders[number], self.names[rest] = rest, None
        elif kind in "RL":
            old, new = rest.split("\0")
            self.names[new] = self.names[old]
            if kind == "R":
                del self.names[old]
        elif kind == "U":
            self.names.pop(rest, None)

    def sync_names(self, folder):
        for path in [path for path in self.synced_names if os.path.dirname(path) == folder and path not in self.names]:
            del self.synced_names[path]
        self.synced_names.update({path: inode for path, inode in self.names.items() if os.path.dirname(path) == folder})

    def after_crash(self, names, data):
        """-> {path relative to the root: bytes, or None for a folder}"""
        found = self.names if names == "all" else self.synced_names
        folders = {self.root} | {path for path, inode in found.items() if inode is None}
        return {os.path.relpath(path, self.root): inode.content(data) if inode else None
                for path, inode in sorted(found.items()) if os.path.dirname(path) in folders}


def records(path):
    with open(path, "rb") as file:
        log = file.read()
    position = 0
    while position < len(log):
        end = log.index(b"\n", position)
        words = log[position:end].decode(errors="surrogateescape")
        size = int(words.split()[3]) if words[0] == "W" else 0
        yield words, log[end + 1:end + 1 + size]
        position = end + 1 + size


def states(log, root):
    """Every state in which the disk may be after a crash during the logged calls, each once, with what was called last."""
    disk, known = Disk(root), set()
    for words, data in records(log):
        disk.apply(words, data)
        for variant in Disk.VARIANTS:
            state = disk.after_crash(*variant)
            key = hash(tuple(state.items()))
            if key not in known:
                known.add(key)
                yield state, f"after {words!r}, names {variant[0]}, data {variant[1]}"


def write_state(state, folder):
    for path, data in state.items():
        where = os.path.join(folder, path)
        if data is None:
            os.makedirs(where, exist_ok=True)
        else:
            with open(where, "wb") as file:
                file.write(data)
