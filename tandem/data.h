// Data sets and loaders. This header lists the public headers of tandem/data.
#pragma once

#include "tandem/data/batches.h"
#include "tandem/data/cifar10.h"
#include "tandem/data/dataset_registry.h"
#include "tandem/data/image_folder.h"
#include "tandem/data/image_set.h"
#include "tandem/data/mnist.h"
#include "tandem/data/skipped_sample.h"
#include "tandem/data/split.h"
#include "tandem/data/synthetic/digits.h"
#include "tandem/data/synthetic/plates.h"
