// Weight and data formats, the download cache. This header lists the public headers of tandem/files.
#pragma once

#include "tandem/files/cache.h"
#include "tandem/files/convert_weights.h"
#include "tandem/files/fetch.h"
#include "tandem/files/idx.h"
#include "tandem/files/inspect.h"
#include "tandem/files/inspect_packed.h"
#include "tandem/files/pth.h"
#include "tandem/files/safetensors.h"
#include "tandem/files/shipped_weights.h"
#include "tandem/files/weights.h"
