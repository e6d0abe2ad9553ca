"""Holds a model file of Tandem against PyTorch, and writes files for the other way.

    python3 tests/golden/check_interchange.py MODEL.safetensors LOGITS.json [FOLDER]

MODEL.safetensors is read by hand (the package may be missing), loaded strictly into torchvision's ResNet, or the plain one
with its names, and run on hashed images; the logits must be those of LOGITS.json, which Tandem wrote: {"depth", "images" (a
name and a shape), "logits"}. Where torchvision is installed, the plain ResNet, from which the stored cases are, is held
against it first. In FOLDER it leaves, of ResNet-18 and 34, resnetN.zip.pth and resnetN.legacy.pth, a state dict as
torchvision saves it, of a network that PyTorch initialized and trained one step, and resnetN.json: the same three, for Tandem
to compare."""
import json
import os
import sys

import numpy as np
import torch

from torch_resnet import ResNet, hashed_state, images, labels, make_resnet

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


def check_plain(depth):
    """torchvision's network and the plain one: the same names, logits, gradients and running statistics in f64."""
    try:
        import torchvision
    except ImportError:
        print(f"resnet{depth}: torchvision is not installed")
        return
    plain, theirs = ResNet(depth, 10).double(), make_resnet(depth, 10).double()
    theirs.load_state_dict(hashed_state(plain, "a."), strict=True)
    plain.load_state_dict(theirs.state_dict(), strict=True)
    x, found = images("torchvision", (3, 64, 64, 3)).double(), []
    for model in (plain, theirs):
        logits = model.train()(x)
        torch.nn.functional.cross_entropy(logits, labels(len(x), 10)).backward()
        parts = {"logits": logits.detach(), **model.state_dict()}
        parts.update({f"gradient of {name}": p.grad for name, p in model.named_parameters()})
        found.append(parts)
    assert list(found[0]) == list(found[1])
    for name, tensor in found[0].items():
        torch.testing.assert_close(tensor, found[1][name], rtol=1e-10, atol=1e-12, msg=f"resnet{depth}: {name} is not torchvision's")
    print(f"resnet{depth}: {len(found[0])} tensors equal those of torchvision {torchvision.__version__}")


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


def leave(folder, depth):
    torch.manual_seed(11)
    about = {"depth": depth, "images": {"name": "the other way", "shape": [2, 64, 64, 3]}}
    model = make_resnet(depth, 5)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x = images("a training step", (4, 64, 64, 3))
    torch.nn.functional.cross_entropy(model.train()(x), labels(len(x), 5)).backward()
    optimizer.step()
    about["logits"] = logits_of(model, about).tolist()
    path = os.path.join(folder, f"resnet{depth}")
    torch.save(model.state_dict(), path + ".zip.pth")
    torch.save(model.state_dict(), path + ".legacy.pth", _use_new_zipfile_serialization=False)
    with open(path + ".json", "w") as file:
        json.dump(about, file)


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    for depth in (18, 34, 50):
        check_plain(depth)
    if not check(sys.argv[1], sys.argv[2]):
        sys.exit("expected the same logits to 1e-4")
    if len(sys.argv) == 4:
        for depth in (18, 34):
            leave(sys.argv[3], depth)
