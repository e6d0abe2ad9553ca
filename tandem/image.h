// 8-bit images on the host: decode, resize, encode, contact sheets. This header lists the public headers of
// tandem/image.
#pragma once

#include "tandem/image/contact_sheet.h"
#include "tandem/image/decode.h"
#include "tandem/image/decode_error.h"
#include "tandem/image/encode_png.h"
#include "tandem/image/heat_map.h"
#include "tandem/image/image.h"
#include "tandem/image/resize.h"
#include "tandem/image/save_image.h"
