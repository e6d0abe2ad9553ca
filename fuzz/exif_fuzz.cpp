// The orientation in EXIF blocks and in XMP: always one of the eight, and a part of an image is upright where
// it is a part of the upright image.
#include "fuzz/fuzz_image.h"
#include "tandem/image/exif.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tandem;
  if (const auto xmp = find_xmp_orientation(text_of(data, size))) require(*xmp >= 1 && *xmp <= 8);
  const int orientation = exif_orientation({data, size});
  require(orientation >= 1 && orientation <= 8);
  if (orientation == 1) return 0;
  Image stored = make_image(3, 2, 1);
  for (std::size_t i = 0; i < stored.pixels.size(); ++i) stored.pixels[i] = static_cast<std::uint8_t>(i);
  const Image upright = apply_orientation(stored, orientation);
  require((upright.height == 2) == swaps_axes(orientation));
  const PixelBox box =
      box_within(upright.height, upright.width, 0x9e3779b97f4a7c15 * (size + data[size - 1]));
  const Image part = copy(crop(stored, stored_box(box, stored.height, stored.width, orientation)));
  require(apply_orientation(part, orientation) == copy(crop(upright, box)));
  return 0;
}
