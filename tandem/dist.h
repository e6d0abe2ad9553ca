// Groups of processes that train together. This header lists the public headers of tandem/dist.
#pragma once

#include "tandem/dist/group.h"
#include "tandem/dist/place.h"
