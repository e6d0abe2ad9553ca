"""Makes tests/golden/pth: weight files as PyTorch saves them, and pickles that no one should run. Needs PyTorch; none of
the pickles is loaded here."""
import os
import struct
import sys
import zipfile
from collections import OrderedDict

import torch

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pth")


def state_dict():
    base = torch.arange(24, dtype=torch.float32)
    tensors = OrderedDict()
    tensors["weight"] = base.reshape(4, 6) / 8
    tensors["transposed"] = base.reshape(4, 6).t()  # shares base's storage, not row-major
    tensors["window"] = base.reshape(2, 3, 4)[1, 1:, ::2]  # an offset and gaps
    tensors["expanded"] = torch.tensor([1.5, -2.0]).expand(3, 2)  # stride 0
    tensors["scalar"] = torch.tensor(-7.25)
    tensors["empty"] = torch.empty(0, 5)
    tensors["double"] = torch.tensor([1e300, -0.1], dtype=torch.float64)
    tensors["half"] = torch.tensor([1.0, -2.5, 6e-8, 65504.0, float("inf")], dtype=torch.float16)
    tensors["bf16"] = torch.tensor([3.0, -0.5], dtype=torch.bfloat16)
    tensors["u8"] = torch.tensor([0, 255], dtype=torch.uint8)
    tensors["i8"] = torch.tensor([-128, 127], dtype=torch.int8)
    tensors["i16"] = torch.tensor([-32768, 5], dtype=torch.int16)
    tensors["i32"] = torch.tensor([-2 ** 31, 7], dtype=torch.int32)
    tensors["i64"] = torch.tensor([2 ** 40, -1], dtype=torch.int64)
    tensors["bool"] = torch.tensor([[True], [False]])
    tensors["parameter"] = torch.nn.Parameter(torch.tensor([[0.25, 0.5]]))
    return tensors


def save(name, value, **options):
    torch.save(value, os.path.join(HERE, name), **options)


def write(name, data):
    with open(os.path.join(HERE, name), "wb") as file:
        file.write(data)


def good():
    save("zip.pth", state_dict())
    save("legacy.pth", state_dict(), _use_new_zipfile_serialization=False)
    for protocol in (3, 4, 5):
        save(f"zip_protocol{protocol}.pth", state_dict(), pickle_protocol=protocol)
    save("legacy_protocol1.pth", state_dict(), _use_new_zipfile_serialization=False, pickle_protocol=1)
    linear = torch.nn.Linear(2, 2)
    with torch.no_grad():
        linear.weight.copy_(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
        linear.bias.copy_(torch.tensor([5.0, 6.0]))
    inner = torch.nn.DataParallel(linear).state_dict()
    save("checkpoint.pth", {"epoch": 3, "best": 0.5, "optimizer": {"state": {}}, "arch": "tiny", "state_dict": inner})
    save("no_tensors.pth", {"epoch": 3})
    save("list.pth", [torch.zeros(1)])
    save("complex.pth", {"c": torch.zeros(1, dtype=torch.complex64)})
    save("nan.pth", {"fine": torch.ones(2), "broken": torch.tensor([1.0, float("nan")])})


# Opcodes by hand, so that every way to a call is there whatever the pickle module writes.
def unicode(text):
    return b"X" + struct.pack("<I", len(text)) + text.encode()


COMMAND = unicode("echo a pickle was executed")
EVIL = {
    "reduce": b"\x80\x02cos\nsystem\n" + COMMAND + b"\x85R.",
    "protocol0": b"cos\nsystem\n(S'true'\ntR.",
    "inst": b"(S'true'\nios\nsystem\n.",
    "obj": b"\x80\x02(cos\nsystem\n" + COMMAND + b"o.",
    "newobj": b"\x80\x02cos\nsystem\n" + COMMAND + b"\x85\x81.",
    "newobj_ex": b"\x80\x04cos\nsystem\n" + COMMAND + b"\x85}\x92.",
    "build": b"\x80\x02ccollections\nOrderedDict\ncos\nsystem\n}b0)R.",
    "stack_global": b"\x80\x04\x8c\x02os\x8c\x06system\x93" + COMMAND + b"\x85R.",
    "memo": b"\x80\x04\x8c\x02os\x94\x8c\x06system\x9400h\x00h\x01\x93" + COMMAND + b"\x85R.",
    "eval": b"\x80\x02cbuiltins\neval\n" + unicode("1+1") + b"\x85R.",
    "getattr": b"\x80\x02cbuiltins\ngetattr\ncos\nsystem\n" + unicode("__call__") + b"\x86R" + COMMAND + b"\x85R.",
    "append": b"\x80\x02cevil\nList\n)RK\x01a.",
    "extension": b"\x80\x02\x82\x07.",
    "whole_model": b"\x80\x02ctorch.nn.modules.linear\nLinear\n)\x81}" + unicode("in_features") + b"K\x01sb.",
}


def evil():
    for name, data in EVIL.items():
        write(f"evil_{name}.pkl", data)
    # In a file of PyTorch's, beside weights.
    state = b"\x80\x02}(" + unicode("w") + EVIL["reduce"][2:-1] + b"u."
    with zipfile.ZipFile(os.path.join(HERE, "evil_nested.pth"), "w") as archive:
        for name, data in (("archive/data.pkl", state), ("archive/version", b"3\n")):
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data)


def main():
    os.makedirs(HERE, exist_ok=True)
    good()
    evil()
    total = sum(os.path.getsize(os.path.join(HERE, name)) for name in os.listdir(HERE))
    print(f"pth: {len(os.listdir(HERE))} files, {total} bytes", file=sys.stderr)


if __name__ == "__main__":
    main()
