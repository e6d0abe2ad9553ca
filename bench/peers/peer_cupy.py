"""CuPy: cupyx.scipy.ndimage.correlate with zeros outside, cupy.maximum, and cupy.matmul(X, X.T) in fp32."""
import measure


def make_call(work, given):
    import cupy
    from cupyx.scipy import ndimage
    if work.study == "xxt":
        out = cupy.empty((work.rows, work.rows), given[0].dtype)
        return lambda: cupy.matmul(given[0], given[0].T, out=out)
    out = cupy.empty_like(given[0])
    if work.study == "max":
        return lambda: cupy.maximum(given[0], given[1], out=out)

    def correlate():
        ndimage.correlate(given[0], given[1], output=out, mode="constant", cval=0.0)
        return out
    return correlate


def run(work, device, budget_s):
    import cupy
    if work.dtype == "tf32":
        yield "CuPy", "CuPy enables TF32 only through an environment variable"
        return

    def new_event():
        event = cupy.cuda.Event()
        event.record()
        return event

    def elapsed_ms(start, end):
        end.synchronize()
        return cupy.cuda.get_elapsed_time(start, end)

    given = measure.inputs(work)
    calls = [make_call(work, [cupy.asarray(array) for array in given]) for _ in range(measure.SETS)]
    measure.check_corner(work, given, cupy.asnumpy(calls[0]()[:64, :64]))
    yield "CuPy", measure.time_gpu(calls, budget_s, new_event, elapsed_ms)


measure.run("CuPy", run)
