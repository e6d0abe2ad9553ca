// Conversion between gray, RGB and RGBA pixels.
#pragma once

#include "tandem/image/image.h"

namespace tandem {

// The view itself if it has `channels` (1 or 3), else its pixels converted as by to_gray() or to_rgb() in
// `memory`, whose allocation is reused. Of four channels (RGBA) the last is dropped. The view must hold
// pixels of 1, 3 or 4 channels.
ImageView with_channels(const ImageView& view, int channels, Image& memory);

}  // namespace tandem
