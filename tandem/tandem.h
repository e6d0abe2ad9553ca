// The public face of the library: everything an application includes. Each header below lists the public
// headers of one folder; what none of them lists is internal and not installed.
#pragma once

#include "tandem/augment.h"
#include "tandem/core.h"
#include "tandem/data.h"
#include "tandem/device.h"
#include "tandem/dist.h"
#include "tandem/files.h"
#include "tandem/image.h"
#include "tandem/nn.h"
#include "tandem/ops.h"
#include "tandem/optim.h"
#include "tandem/process.h"
#include "tandem/report.h"
#include "tandem/tensor.h"
#include "tandem/train.h"
