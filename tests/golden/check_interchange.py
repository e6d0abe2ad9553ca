"""Holds a model file of Tandem against PyTorch, and writes files for the other way.

    python3 tests/golden/check_interchange.py MODEL.safetensors LOGITS.json [FOLDER]

MODEL.safetensors is read by hand (the package may be missing), loaded strictly into torchvision's ResNet, or the plain one
with its names, and run on hashed images; the logits must be those of LOGITS.json, which Tandem wrote: {"depth", "images" (a
name and a shape), "logits"}. In FOLDER it leaves zip.pth and legacy.pth, a state dict as torchvision saves it, of a network
that PyTorch initialised and trained one step, and expected.json: the same three, for Tandem to compare."""
import json
import os
import sys

import numpy as np
import torch

from torch_resnet import images, labels, make_resnet

DTYPES = {"F32": np.float32, "F64": np.float64, "I32": np.int32, "I64": np.int64, "U8": np.uint8}


def read_safetensors(path):
    with open(path, "rb") as file:
        data = file.read()
    start = 8 + int.from_bytes(data[:8], "little")
    tensors = {}
    for name, entry in json.loads(data[8:start]).items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        array = np.frombuffer(data[start + begin:start + end], DTYPES[entry["dtype"]]).reshape(entry["shape"])
        tensors[name] = torch.from_numpy(array.copy())
    return tensors


def logits_of(model, about):
    with torch.no_grad():
        return model.eval()(images(about["images"]["name"], about["images"]["shape"])).double().numpy()


def check(model_path, logits_path):
    with open(logits_path) as file:
        about = json.load(file)
    state = read_safetensors(model_path)
    model = make_resnet(about["depth"], len(state["fc.bias"]))
    model.load_state_dict(state, strict=True)
    expected, actual = np.array(about["logits"]), logits_of(model, about)
    error = np.abs(actual - expected).max() / np.abs(expected).max()
    print(f"{model_path}: {len(state)} tensors, logits differ by {error:.1e}")
    return error <= 1e-4


def leave(folder):
    torch.manual_seed(11)
    about = {"depth": 18, "images": {"name": "the other way", "shape": [2, 64, 64, 3]}}
    model = make_resnet(about["depth"], 5)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x = images("a training step", (4, 64, 64, 3))
    torch.nn.functional.cross_entropy(model.train()(x), labels(len(x), 5)).backward()
    optimizer.step()
    about["logits"] = logits_of(model, about).tolist()
    torch.save(model.state_dict(), os.path.join(folder, "zip.pth"))
    torch.save(model.state_dict(), os.path.join(folder, "legacy.pth"), _use_new_zipfile_serialization=False)
    with open(os.path.join(folder, "expected.json"), "w") as file:
        json.dump(about, file)


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    if not check(sys.argv[1], sys.argv[2]):
        sys.exit("expected the same logits to 1e-4")
    if len(sys.argv) == 4:
        leave(sys.argv[3])
