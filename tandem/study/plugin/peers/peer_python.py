"""Plain Python: loops over lists, one thread. Cases that would take more than a few seconds are left out."""
MAX_STEPS = 30_000_000


def max(a, b, out):
    if a.size > MAX_STEPS:
        return NotImplemented
    for row_a, row_b, row_out in zip(a.tolist(), b.tolist(), out):
        row_out[:] = [x if x > y else y for x, y in zip(row_a, row_b)]


def xxt(x, out):
    if x.shape[0] * x.size > MAX_STEPS:
        return NotImplemented
    rows = x.tolist()
    for row, row_out in zip(rows, out):
        row_out[:] = [sum([p * q for p, q in zip(row, other)]) for other in rows]


def correlation(image, kernel, out):
    if image.size * kernel.size > MAX_STEPS:
        return NotImplemented
    height, width = image.shape
    top, left = kernel.shape[0] // 2, kernel.shape[1] // 2
    rows, weights = image.tolist(), kernel.tolist()
    for y in range(height):
        line = []
        for x in range(width):
            total = 0.0
            for i, weight_row in enumerate(weights):
                if 0 <= y + i - top < height:
                    row = rows[y + i - top]
                    for j, weight in enumerate(weight_row):
                        if 0 <= x + j - left < width:
                            total += weight * row[x + j - left]
            line.append(total)
        out[y] = line
