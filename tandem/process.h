// Communication between processes: the pipe queue. This header lists the public headers of tandem/process.
#pragma once

#include "tandem/process/descriptor.h"
#include "tandem/process/pipe_queue.h"
