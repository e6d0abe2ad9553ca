// Devices, streams and events, device memory, facts about the machine. This header lists the public headers
// of tandem/device.
#pragma once

#include "tandem/device/buffer.h"
#include "tandem/device/device.h"
#include "tandem/device/machine.h"
#include "tandem/device/on_backend.h"
#include "tandem/device/stream.h"
