#!/usr/bin/env python3
"""peer_torch_server.py MODEL [--device DEVICE] [--processes N] [--max-batch N]: what one writes in Python to serve a ResNet-18, for bench/serving.

asyncio in place of FastAPI, which is not installed everywhere: the same event loop, without the time for routing and validation. Pillow decodes and resizes in threads,
torch computes what has come meanwhile as one batch, in fp32 (on a GPU with TF32, as cuDNN has it by default). With several processes, each has its
own model, and the kernel divides the connections. MODEL is a ResNet-18 of Tandem, whose weights have the names and layout of torchvision.
"""
import argparse
import asyncio
import concurrent.futures
import io
import json
import os
import queue
import re
import socket
import struct
import subprocess
import sys
import threading

import numpy
import torch
import torchvision
from PIL import Image


def load(path, device):
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    info = header.pop("__metadata__")
    kinds = {"F32": numpy.float32, "I64": numpy.int64}
    state = {name: torch.from_numpy(numpy.frombuffer(data[each["data_offsets"][0]:each["data_offsets"][1]], kinds[each["dtype"]]).reshape(each["shape"]).copy())
             for name, each in header.items()}
    classes = json.loads(info["tandem.classes"])
    if info["tandem.model"] != "resnet18" or info["tandem.transform"] != "resize":
        sys.exit("peer_torch_server: error: expected a resnet18 with the transform resize")
    model = torchvision.models.resnet18(num_classes=len(classes))
    model.load_state_dict(state)
    height, width, _ = map(int, info["tandem.image"].split(","))
    norm = [torch.tensor([float(x) for x in info[name].split(",")], device=device).view(1, 3, 1, 1) for name in ("tandem.mean", "tandem.std")]
    return model.eval().to(device).to(memory_format=torch.channels_last), classes, (width, height), norm


class Server:
    def __init__(self, options, port, threads):
        self.device, self.max_batch = torch.device(options.device), options.max_batch
        self.model, self.classes, self.size, self.norm = load(options.model, self.device)
        self.sock = socket.socket()
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        self.sock.bind(("127.0.0.1", port))
        self.pool = concurrent.futures.ThreadPoolExecutor(threads)
        self.waiting = queue.Queue()
        self.compute([numpy.zeros((*self.size[::-1], 3), numpy.uint8)])
        threading.Thread(target=self.compute_all, daemon=True).start()

    def decode(self, body):
        return numpy.asarray(Image.open(io.BytesIO(body)).convert("RGB").resize(self.size, Image.BILINEAR))

    @torch.inference_mode()
    def compute(self, images):
        pixels = torch.from_numpy(numpy.stack(images))
        if self.device.type == "cuda":
            pixels = pixels.pin_memory().to(self.device, non_blocking=True)
        x = pixels.permute(0, 3, 1, 2).float().div_(255).sub_(self.norm[0]).div_(self.norm[1])
        return torch.softmax(self.model(x), 1).cpu().tolist()

    def compute_all(self):
        while True:
            jobs = [self.waiting.get()]
            while len(jobs) < self.max_batch and not self.waiting.empty():
                jobs.append(self.waiting.get())
            rows = self.compute([image for image, _ in jobs])
            for (_, future), row in zip(jobs, rows):
                self.loop.call_soon_threadsafe(future.set_result, row)

    async def handle(self, reader, writer):
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                body = await reader.readexactly(int(re.search(rb"(?i)content-length: *(\d+)", head)[1]))
                image = await self.loop.run_in_executor(self.pool, self.decode, body)
                future = self.loop.create_future()
                self.waiting.put((image, future))
                row = await future
                answer = json.dumps({"predictions": [{"class": self.classes[max(range(len(row)), key=row.__getitem__)],
                                                      "probability": max(row), "probabilities": dict(zip(self.classes, row))}]}).encode()
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(answer) + answer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def run(self, on_ready):
        self.loop = asyncio.get_running_loop()
        server = await asyncio.start_server(self.handle, sock=self.sock, limit=1 << 20, backlog=1024)
        on_ready(self.sock.getsockname()[1])
        async with server:
            await server.serve_forever()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--max-batch", type=int, default=32)
    parser.add_argument("--port", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    torch.set_num_threads(max(1, cores // options.processes))
    torch.backends.cudnn.benchmark = False  # batches have many sizes
    server = Server(options, options.port, max(2, cores // options.processes))
    others = []

    def on_ready(port):
        if not options.port:
            others.extend(subprocess.Popen([sys.executable, *sys.argv, "--port", str(port)], stderr=subprocess.PIPE, text=True)
                          for _ in range(options.processes - 1))
            for other in others:
                other.stderr.readline()
        print(f"Listening on http://127.0.0.1:{port}", file=sys.stderr, flush=True)

    try:
        asyncio.run(server.run(on_ready))
    except KeyboardInterrupt:
        pass
    finally:
        for other in others:
            other.kill()


main()
