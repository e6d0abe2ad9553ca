"""Runs a plugin written in Python for a KernelProcess. protocol.h describes the page that both processes share.

A plugin is a module with functions named after the computation: `max(a, b, out)`, `xxt(x, out)`, `correlation(image, kernel, out)`. The arguments
are NumPy arrays over shared memory; inputs cannot be written to. A function fills `out`, or returns the result, which is then copied. It may take a
keyword argument `threads`, and returns NotImplemented for a case that it does not support. A module with `device = "cuda"` gets objects with __cuda_array_interface__ instead. A function `prepare(array)`, if there
is one, is applied to every argument once, before anything is measured: `prepare = torch.from_numpy`.
"""
import ctypes
import importlib.util
import inspect
import mmap
import os
import select
import sys
import time

PAGE_HEAD = [("private_bytes", "<i8"), ("private_address", "<u8"), ("input_count", "<i4"), ("output_count", "<i4"), ("sets", "<i4"), ("function", "S64"), ("is_loaded", "<i4"), ("is_cuda", "<i4"),
             ("message", "S512"), ("buffer", "V64"), ("threads", "<i4"), ("call_count", "<i4"), ("result", "<i4"), ("calls", "<i4", 4096)]
ARRAY = [("offset", "<i8"), ("rows", "<i8"), ("columns", "<i8"), ("channels", "<i8"), ("type", "<i4"), ("reserved", "<i4")]
HUGE_PAGE = 2 << 20
TYPES = {0: "<f4", 1: "<f8", 3: "|u1", 4: "<i4", 5: "<i8"}


class CudaArray:
    """An array in device memory, as CuPy, Numba and PyTorch accept it."""

    def __init__(self, address, shape, typestr):
        self.__cuda_array_interface__ = {"data": (address, False), "shape": shape, "typestr": typestr, "version": 3, "strides": None}


class CudaRuntime:
    """Opens the study's device memory and waits for the default stream."""

    def __init__(self):
        for name in ("libcudart.so", "libcudart.so.13", "libcudart.so.12", "/usr/local/cuda/lib64/libcudart.so"):
            try:
                self.library = ctypes.CDLL(name)
                return
            except OSError:
                pass
        raise RuntimeError("the CUDA runtime (libcudart.so) was not found")

    def open(self, handle):
        class Handle(ctypes.Structure):
            _fields_ = [("bytes", ctypes.c_char * 64)]
        value = Handle.from_buffer_copy(handle)
        address = ctypes.c_void_p()
        status = self.library.cudaIpcOpenMemHandle(ctypes.byref(address), value, 1)
        if status != 0:
            raise RuntimeError(f"cudaIpcOpenMemHandle failed with error {status}")
        return address.value

    def synchronize(self):
        if self.library.cudaStreamSynchronize(None) != 0:
            raise RuntimeError("a CUDA kernel failed")


def load(path):
    sys.path[0] = os.path.dirname(path)  # so that a plugin can import its neighbors
    spec = importlib.util.spec_from_file_location("plugin", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["plugin"] = module
    spec.loader.exec_module(module)
    return module


class Host:
    def __init__(self, np, page_fd, inputs_fd, outputs_fd, path):
        self.np = np
        self.page = mmap.mmap(page_fd, 0)
        self.inputs = mmap.mmap(inputs_fd, 0, prot=mmap.PROT_READ)
        self.outputs = mmap.mmap(outputs_fd, 0)
        head = np.dtype(PAGE_HEAD)
        self.head = np.frombuffer(self.page, head, 1)
        self.arrays = np.frombuffer(self.page, np.dtype(ARRAY), 2048, (head.itemsize + 7) // 8 * 8)
        self.calls = None
        self.cuda = None
        self.module = load(path)
        name = self.head["function"][0].decode()
        self.function = getattr(self.module, "tandem_" + name, None) or getattr(self.module, name, None)
        if not callable(self.function):
            self.head["is_loaded"] = 2
            raise LookupError(f"has no function {name}")
        self.head["is_cuda"] = getattr(self.module, "device", "cpu") == "cuda"
        self.private = None
        if not self.head["is_cuda"][0] and self.head["private_bytes"][0] > 0:
            self.private = mmap.mmap(-1, int(self.head["private_bytes"][0]) + HUGE_PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            self.private.madvise(mmap.MADV_HUGEPAGE)
            address = ctypes.addressof(ctypes.c_char.from_buffer(self.private))
            self.private_start = -address % HUGE_PAGE
            self.head["private_address"] = address + self.private_start
        self.head["is_loaded"] = 1

    def array(self, index, is_input):
        offset, rows, columns, channels, kind, _ = (int(value) for value in self.arrays[index])
        shape = (rows, columns) if channels == 1 else (rows, columns, channels)
        if self.cuda:
            return CudaArray(self.base + offset, shape, TYPES[kind])
        memory = self.inputs if is_input else self.outputs
        if self.private and self.head["private_address"][0]:
            memory, offset = self.private, offset + self.private_start
        array = self.np.frombuffer(memory, TYPES[kind], rows * columns * channels, offset).reshape(shape)
        array.flags.writeable = not is_input
        return array

    def make_calls(self):
        """The arguments of every set. The page is complete at the first request."""
        head = self.head[0]
        if head["is_cuda"]:
            self.cuda = CudaRuntime()
            self.base = self.cuda.open(bytes(head["buffer"]))
        prepare = getattr(self.module, "prepare", lambda array: array)
        inputs, outputs = int(head["input_count"]), int(head["output_count"])
        first = [set_index * (inputs + outputs) for set_index in range(int(head["sets"]))]
        self.calls = [([prepare(self.array(base + i, True)) for i in range(inputs)],
                       [prepare(self.array(base + i, False)) for i in range(inputs, inputs + outputs)]) for base in first]
        try:
            parameters = inspect.signature(self.function).parameters
        except (TypeError, ValueError):
            parameters = {"out": None} | {str(i): None for i in range(inputs)}
        self.takes_threads = "threads" in parameters
        self.takes_outputs = len(parameters) - self.takes_threads >= inputs + outputs

    def answer(self):
        if self.calls is None:
            self.make_calls()
        head = self.head[0]
        named = {"threads": int(head["threads"])} if self.takes_threads else {}
        for index in head["calls"][:head["call_count"]]:
            inputs, outputs = self.calls[index]
            if self.takes_outputs:
                result = self.function(*inputs, *outputs, **named)
            else:
                result = self.function(*inputs, **named)
            if result is NotImplemented:
                self.head["result"] = 1
            elif result is not None and result is not outputs[0]:
                results = result if isinstance(result, (tuple, list)) else [result]
                for out, value in zip(outputs, results):
                    out[...] = value
        if self.cuda:
            self.cuda.synchronize()


def wait_for_request(requests):
    """Asks again and again for a while before it sleeps; read_byte in plugin_host.cpp says why. False at the end."""
    poll = select.poll()
    poll.register(requests, select.POLLIN)
    begin = time.monotonic()
    while not poll.poll(0):
        if time.monotonic() > begin + 0.02:
            poll.poll()
    return os.read(requests, 1) != b""


def main():
    page, inputs, outputs, requests, replies = (int(word) for word in sys.argv[1:6])
    try:
        import numpy as np
        host = Host(np, page, inputs, outputs, sys.argv[6])
    except LookupError as error:
        memory = mmap.mmap(page, 0)
        start = 16 + 12 + 64 + 8
        message = str(error.args[0]).encode()[:500]
        memory[start:start + len(message)] = message
        os.write(replies, b"\0")
        return
    os.write(replies, b"\0")
    while wait_for_request(requests):
        host.answer()
        os.write(replies, b"\0")


main()
