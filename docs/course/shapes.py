#!/usr/bin/env python3
"""shapes.py FILE.pgm [BACKGROUND]: writes a test picture of 64x64 pixels: a square, a diagonal edge, two lines of one pixel, and a dot."""
import sys

SIDE, BRIGHT = 64, 200


def is_bright(x, y):
    square = 6 <= x < 26 and 6 <= y < 26
    triangle = 6 <= y < 30 and x - y >= 28 and x < 58
    lines = (x == 16 and 36 <= y < 58) or (y == 46 and 28 <= x < 46)
    return square or triangle or lines or (x, y) == (54, 46)


def main():
    background = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    with open(sys.argv[1], "w") as file:
        file.write(f"P2\n{SIDE} {SIDE}\n255\n")
        for y in range(SIDE):
            file.write(" ".join(str(BRIGHT if is_bright(x, y) else background) for x in range(SIDE)) + "\n")


main()
