"""The plan of bench/compare: the peers, the cases of each study on each device, the units of the figures and their targets."""
import os
from collections import namedtuple

Peer = namedtuple("Peer", "name script device studies")
PEERS = [
    Peer("copy", "peer_copy.py", "cpu", ("max", "correlation")),
    Peer("copy", "peer_copy.py", "cuda", ("max", "correlation")),
    Peer("NumPy", "peer_numpy_train.py", "cpu", ("train",)),
    Peer("PyTorch", "peer_torch_train.py", "cpu", ("train",)),
    Peer("PyTorch", "peer_torch_train.py", "cuda", ("train",)),  # also prints "PyTorch graph"
    Peer("SciPy", "peer_scipy_augment.py", "cpu", ("augment",)),
    Peer("torchvision", "peer_torch_augment.py", "cpu", ("augment",)),
    Peer("PyTorch", "peer_torch_augment.py", "cuda", ("augment",)),
    Peer("PyTorch", "peer_torch_resnet.py", "cpu", ("resnet",)),  # with --compile also prints "PyTorch compiled"
    Peer("PyTorch", "peer_torch_resnet.py", "cuda", ("resnet",)),
    Peer("PyTorch", "peer_torch_resnet.py", "cuda", ("resnet50",)),
    Peer("PyTorch", "peer_torch_resnet.py", "cpu", ("mobile",)),
    Peer("PyTorch", "peer_torch_resnet.py", "cuda", ("mobile",)),
    Peer("PyTorch", "peer_torch_folder.py", "cpu", ("folder",)),
    Peer("PyTorch", "peer_torch_plates.py", "cpu", ("plates",)),
    Peer("PyTorch", "peer_torch_plates.py", "cuda", ("plates",)),
]

# The peers of the studies of one computation: `tandem study --peers` measures them (tandem/study/plugin/peers). The version in its
# table, and what it is called here.
STUDY_PEERS = {
    "cpu": {"NumPy": "NumPy", "SciPy": "SciPy", "OpenCV": "OpenCV", "Numba": "Numba", "PyTorch": "PyTorch"},
    "cuda": {"PyTorch CUDA": "PyTorch", "CuPy": "CuPy", "Numba CUDA": "Numba"},
}
STUDY_PEER_NAMES = {"cpu": "numpy,scipy,opencv,numba,torch", "cuda": "torch,cupy,numba"}

# The units of a study's figures. Internally they are milliseconds: for `train` the time of an epoch of 60,000 samples,
# for `augment`, `resnet`, `resnet50`, `mobile` and `folder` the time of 60,000 images.
Unit = namedtuple("Unit", "name from_ms more_is_better")
MS = Unit("ms", lambda ms: ms, False)
RATE = Unit("M samples/s", lambda ms: 60 / ms, True)
IMAGES = Unit("M images/s", lambda ms: 60 / ms, True)
PHOTOS = Unit("images/s", lambda ms: 60000 * 1000 / ms, True)
SECONDS = Unit("s", lambda ms: ms / 1000, False)

# Targets relative to a peer: the peer's time divided by Tandem's must be at least min_ratio. A copy moves the same bytes as the
# case, so its ratio is the share of the copy's bandwidth; 1.5 times the copy's time is a ratio of 1 / 1.5. A bar applies to the
# cases that contain all of its words.
Bar = namedtuple("Bar", "device study words peer min_ratio")
BARS = [
    Bar("cpu", "max", "8192x8192", "copy", 0.90),
    Bar("cpu", "xxt", "", "NumPy", 1.0),
    Bar("cpu", "correlation", "4096x4096", "OpenCV", 2.5),
    Bar("cpu", "correlation", "4096x4096", "SciPy", 40),
    Bar("cuda", "max", "8192x8192", "copy", 0.90),
    Bar("cuda", "max", "1000x1000 i32", "reference", 40),
    Bar("cuda", "xxt", "4096x4096 f32", "PyTorch", 1.6),
    Bar("cuda", "xxt", "4096x4096 tf32", "PyTorch", 1.4),
    Bar("cuda", "correlation", "4096x4096 f32 3x3", "copy", 1 / 1.5),
    Bar("cuda", "correlation", "4096x4096 f32 5x5", "copy", 1 / 1.5),
    Bar("cuda", "correlation", "4096x4096 f32 7x7", "copy", 1 / 2),
]
MANY_CORES = len(os.sched_getaffinity(0)) >= 8
BARS += [Bar("cpu", "train", batch, peer, min_ratio) for batch, peer, min_ratio in (
    [("16", "PyTorch", 4), ("128", "PyTorch", 3), ("1024", "PyTorch", 1.5)] if MANY_CORES else
    [("16", "PyTorch", 2.2), ("16", "NumPy", 2.2), ("128", "PyTorch", 1.25), ("128", "NumPy", 1.25)])]
BARS += [Bar("cpu", "resnet", what, "PyTorch", min_ratio) for what, min_ratio in (
    [("infer fp32", 1.2), ("train fp32", 1.0)] if MANY_CORES else [("infer fp32", 2), ("train-head", 2), ("train fp32", 1.4)])]
BARS += [Bar("cpu", "resnet", f"{what} bf16", peer, 1.2) for what in ("train", "infer") for peer in ("PyTorch", "PyTorch compiled")]
BARS += [Bar("cuda", "resnet", f"{what} {precision}", "PyTorch", 1.05) for what in ("train", "infer") for precision in ("fp32", "tf32", "bf16")]
BARS += [Bar("cuda", "resnet", f"{what} bf16", "PyTorch compiled", 1.05) for what in ("train", "infer")]
BARS += [Bar("cuda", "resnet50", f"{what} bf16", peer, 1.05) for what in ("train", "infer") for peer in ("PyTorch", "PyTorch compiled")]
BARS += [Bar("cpu", "mobile", "infer", "PyTorch", 1.2)]
BARS += [Bar("cuda", "mobile", f"{what} bf16", peer, 1.05) for what in ("train", "infer") for peer in ("PyTorch", "PyTorch compiled")]

# Absolute targets in the unit of the study: at least this rate, or less than this time.
Limit = namedtuple("Limit", "device study words figure")
LIMITS = [
    Limit("cuda", "train", "784,200,10 16", 1.5),
    Limit("cuda", "train", "784,200,10 128", 6),
    Limit("cuda", "train", "784,200,10 1024", 20),
    Limit("cuda", "train", "784,4096,4096,10 fp32 1024", 0.42),
    Limit("cuda", "mnist", "", 1),
    Limit("cuda", "augment", "28x28 65536", 300),
    Limit("cuda", "resnet", "train bf16", 22500),
    Limit("cuda", "resnet", "infer bf16", 90000),
    Limit("cuda", "resnet50", "train bf16", 8000),
    Limit("cuda", "resnet50", "infer bf16", 38000),
    Limit("cuda", "plates", "100", 1.5),
]
# On two cores: 100 times the rate of Python worker processes while training in NumPy (5,500 images/s).
LIMITS += ([Limit("cpu", "augment", "threads", 3), Limit("cpu", "augment", "processes", 2.5)] if MANY_CORES else
           [Limit("cpu", "augment", "processes", 0.55)])
if MANY_CORES:
    LIMITS += [Limit("cpu", "folder", "exact", 12000), Limit("cpu", "folder", "scaled", 16000), Limit("cpu", "plates", "100", 20)]

STUDIES = ("max", "xxt", "correlation", "train", "augment", "resnet", "resnet50", "mobile", "folder", "plates")
UNITS = {"max": MS, "xxt": MS, "correlation": MS, "train": RATE, "mnist": SECONDS, "augment": IMAGES, "resnet": PHOTOS, "resnet50": PHOTOS, "mobile": PHOTOS,
         "folder": PHOTOS, "plates": SECONDS}
MOBILE = ("mobilenet_v3_small", "mobilenet_v3_large", "efficientnet_b0")
PERCEPTRON = [f"784,200,10 fp32 {batch}" for batch in (16, 128, 1024)]
MAXIMA = ["1000x1000 i32", "8192x8192 i32", "8192x8192 f32"]
CASES = {
    ("cpu", "max"): MAXIMA,
    ("cpu", "xxt"): ["1000x1000 f32", "4096x4096 f32"],
    ("cpu", "correlation"): [f"4096x4096 {dtype} {k}x{k}" for dtype in ("f32", "f64") for k in (3, 5, 7)],
    ("cpu", "train"): PERCEPTRON,
    ("cpu", "augment"): ["28x28 digits 128 threads", "28x28 digits 128 processes"],
    ("cuda", "max"): MAXIMA,
    ("cuda", "xxt"): ["1000x1000 f32", "4096x4096 f32", "4096x4096 tf32"],
    ("cuda", "correlation"): ["1024x1024 f32 3x3"] + [f"4096x4096 f32 {k}x{k}" for k in (3, 5, 7)],
    ("cuda", "train"): PERCEPTRON + [f"784,4096,4096,10 {precision} 1024" for precision in ("fp32", "tf32", "bf16")],
    ("cuda", "augment"): ["28x28 digits 1024", "28x28 digits 65536"],
    ("cpu", "resnet"): [f"{what} fp32 8" for what in ("train", "train-head", "infer")] +
                       [f"{what} {batch}" for what in ("train bf16", "infer bf16", "infer int8") for batch in (8, 32)],
    ("cpu", "mobile"): [f"{model} {what} fp32 8" for model in MOBILE for what in ("train", "infer")],
    ("cuda", "mobile"): [f"{model} {what} bf16 256" for model in MOBILE for what in ("train", "infer")],
    ("cpu", "folder"): ["500x500 exact", "500x500 scaled"],
    ("cpu", "plates"): [f"34+8 480x480 {100 if MANY_CORES else 10} epochs"],
    ("cuda", "resnet"): [f"{what} {precision} 256" for what in ("train", "train-head", "infer") for precision in ("fp32", "tf32", "bf16")],
    ("cuda", "resnet50"): ["train bf16 256", "infer bf16 256"],
    ("cuda", "plates"): ["34+8 480x480 100 epochs"],
}
QUICK = {"max": ["1000x1000 i32"], "xxt": ["1000x1000 f32"], "correlation": ["1024x1024 f32 3x3"], "train": ["784,200,10 fp32 128"],
         "augment": ["28x28 digits 65536", "28x28 digits 128 threads"], "resnet": ["infer fp32 8", "infer bf16 256"], "resnet50": ["infer bf16 256"],
         "mobile": ["mobilenet_v3_small infer fp32 8", "mobilenet_v3_small infer bf16 256"],
         "folder": ["500x500 exact"], "plates": ["34+8 480x480 3 epochs"]}
# The version that is compared on each device; `reference` also runs if a bar names it.
VERSION = {"cpu": "parallel", "cuda": "cuda"}
# Part of the group `train` if the data set is available: the time printed by `tandem train`, if the accuracy was reached.
MNIST_EPOCHS, MNIST_ACCURACY = 3, 97.0
MNIST_CASE = f"{MNIST_EPOCHS} epochs to {MNIST_ACCURACY:g} %"
MNIST_FILES = [f"{part}-{kind}-ubyte" for part in ("train", "t10k") for kind in ("images-idx3", "labels-idx1")]
