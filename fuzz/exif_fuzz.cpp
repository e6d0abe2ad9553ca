// The orientation in EXIF blocks: always one of the eight.
#include "fuzz/fuzz.h"
#include "tandem/image/exif.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const int orientation = tandem::exif_orientation({data, size});
  tandem::require(orientation >= 1 && orientation <= 8);
  return 0;
}
