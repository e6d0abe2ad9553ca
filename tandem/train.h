// Training, evaluation, prediction. This header lists the public headers of tandem/train.
#pragma once

#include "tandem/train/metrics.h"
