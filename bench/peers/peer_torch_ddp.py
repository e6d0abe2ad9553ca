"""ResNet-18 trained by PyTorch's DistributedDataParallel with gloo on the CPUs of this machine: images per second.

peer_torch_ddp.py RANKS BATCH SIDE: forward, backward and an update of a global batch of BATCH random images of SIDE x SIDE pixels.
"""
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as multiprocessing
import torchvision

STEPS, SKIPPED = 9, 3


def work(rank, ranks, batch, side):
    cpus = sorted(os.sched_getaffinity(0))
    own = cpus[rank * len(cpus) // ranks:(rank + 1) * len(cpus) // ranks]
    os.sched_setaffinity(0, own)
    torch.set_num_threads(len(own))
    network = torchvision.models.resnet18(num_classes=2).to(memory_format=torch.channels_last)
    images = torch.randn(batch // ranks, 3, side, side).to(memory_format=torch.channels_last)
    labels = torch.arange(batch // ranks) % 2
    if ranks > 1:
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29511", GLOO_SOCKET_IFNAME="lo")
        dist.init_process_group("gloo", rank=rank, world_size=ranks)
        network = torch.nn.parallel.DistributedDataParallel(network)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9)
    times = []
    for _ in range(STEPS):
        if ranks > 1:
            dist.barrier()
        begin = time.perf_counter()
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(network(images), labels).backward()
        optimizer.step()
        times.append(time.perf_counter() - begin)
    if rank == 0:
        print(batch / statistics.median(times[SKIPPED:]), flush=True)


if __name__ == "__main__":
    ranks, batch, side = map(int, sys.argv[1:])
    multiprocessing.spawn(work, (ranks, batch, side), nprocs=ranks)
