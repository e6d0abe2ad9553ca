#!/usr/bin/env python3
"""kernel.py box|gauss|edge SIZE: prints a SIZE×SIZE kernel for `tandem filter --kernel`.

box: the mean. gauss: a weighted mean. edge: the derivative of gauss across; with --gradient it finds edges of large shapes."""
import math
import sys


def main():
    kind, size = sys.argv[1], int(sys.argv[2])
    center, sigma = (size - 1) / 2, size / 5
    bell = [[math.exp(-((x - center) ** 2 + (y - center) ** 2) / (2 * sigma ** 2)) for x in range(size)] for y in range(size)]
    weight = {"box": lambda x, y: 1.0, "gauss": lambda x, y: bell[y][x], "edge": lambda x, y: (center - x) * bell[y][x]}[kind]
    values = [[weight(x, y) for x in range(size)] for y in range(size)]
    total = sum(abs(value) for row in values for value in row)
    print("; ".join(" ".join(f"{value / total:.6g}" for value in row) for row in values))


main()
