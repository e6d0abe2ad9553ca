// Optimizers and learning-rate schedules. This header lists the public headers of tandem/optim.
#pragma once

#include "tandem/optim/clip_gradients.h"
#include "tandem/optim/fused_optimizer.h"
#include "tandem/optim/lars.h"
#include "tandem/optim/lookahead.h"
#include "tandem/optim/optimizer.h"
#include "tandem/optim/optimizer_options.h"
#include "tandem/optim/optimizer_registry.h"
#include "tandem/optim/rmsprop.h"
#include "tandem/optim/schedule.h"
#include "tandem/optim/weight_average.h"
