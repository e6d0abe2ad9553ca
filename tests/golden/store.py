"""Writes stored cases: NAME.json, a list of cases with the dtype, shape and byte offset of every array, and NAME.bin, the
arrays as raw little-endian bytes, each starting at a multiple of 8. tests/golden/golden.h reads them."""
import json
import os
import sys

import numpy as np

DTYPES = {np.dtype(t): name for t, name in
          ((np.float32, "f32"), (np.float64, "f64"), (np.uint8, "u8"), (np.int32, "i32"), (np.int64, "i64"))}
HERE = os.path.dirname(os.path.abspath(__file__))


class Store:
    def __init__(self, name):
        self.name, self.cases, self.data = name, [], bytearray()

    def add(self, case, arrays, **params):
        """`params` are the plain values of the call (axis, transposes); `arrays` its inputs and expected results."""
        assert all(case != c["name"] for c in self.cases), f"two cases are called {case}"
        entry = {"name": case, "params": params, "arrays": {}}
        for key, value in arrays.items():
            shape = list(np.shape(value))  # before ascontiguousarray, which makes a scalar one-dimensional
            value = np.ascontiguousarray(value)
            entry["arrays"][key] = {"dtype": DTYPES[value.dtype], "shape": shape, "offset": len(self.data)}
            self.data += value.astype(value.dtype.newbyteorder("<")).tobytes()
            self.data += bytes(-len(self.data) % 8)
        self.cases.append(entry)

    def write(self):
        index = "[\n" + ",\n".join(json.dumps(c) for c in self.cases) + "\n]\n"
        for suffix, content in ((".bin", bytes(self.data)), (".json", index.encode())):
            path = os.path.join(HERE, self.name + suffix)
            with open(path + ".part", "wb") as file:
                file.write(content)
            os.replace(path + ".part", path)
        print(f"{self.name}: {len(self.cases)} cases, {len(self.data)} bytes", file=sys.stderr)
