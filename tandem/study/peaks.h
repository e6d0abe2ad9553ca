// The machine's own limits, measured in the run that shows them: a copy for what memory gives, a large matrix
// product for what the arithmetic units give, with every core this process may use.
#pragma once

#include <cstdint>

#include "tandem/device/device.h"

namespace tandem {

enum class Arithmetics { f32, tf32, f64 };

// GB/s, counting bytes read and written, of a copy that touches `bytes` in all: what fits a cache is compared
// with a copy that fits it too. Measured once for each size.
double copy_gb_per_s(Device device, std::int64_t bytes);

// GFLOP/s of a matrix product. Measured once.
double product_gflop_per_s(Device device, Arithmetics arithmetics);

}  // namespace tandem
