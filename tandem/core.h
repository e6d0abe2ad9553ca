// Errors and checks, dtypes, the counter-based random generator, shapes, parallel loops, clocks. This header
// lists the public headers of tandem/core.
#pragma once

#include "tandem/core/clock.h"
#include "tandem/core/did_you_mean.h"
#include "tandem/core/dtype.h"
#include "tandem/core/error.h"
#include "tandem/core/index_range.h"
#include "tandem/core/on_dtype.h"
#include "tandem/core/parallel.h"
#include "tandem/core/philox.h"
#include "tandem/core/registry.h"
#include "tandem/core/shape.h"

// nvcc does not read fmt: a .cu file throws Error (core/error.h) itself.
#if !defined(__CUDACC__)
#include "tandem/core/check.h"
#endif
