// The machine's peak rates, measured in the run that reports them, on all cores this process may use: a copy
// for memory bandwidth, a large matrix product for arithmetic.
#pragma once

#include <cstdint>

#include "tandem/device/device.h"

namespace tandem {

enum class PeakPrecision { f32, tf32, f64 };

// GB/s, counting bytes read and written, of a copy that touches `bytes` in total, so that data that fits a
// cache is compared with a copy that fits it too. Measured once per size.
double copy_gb_per_s(Device device, std::int64_t bytes);

// GFLOP/s of a matrix product. Measured once.
double matmul_gflop_per_s(Device device, PeakPrecision peak_precision);

}  // namespace tandem
