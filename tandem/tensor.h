// Tensors and the autograd tape. This header lists the public headers of tandem/tensor.
#pragma once

#include "tandem/tensor/copy.h"
#include "tandem/tensor/named_tensor.h"
#include "tandem/tensor/tape.h"
#include "tandem/tensor/tensor.h"
