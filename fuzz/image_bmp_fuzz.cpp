// BMP files.
#include "fuzz/fuzz_image.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return tandem::fuzz_image({data, size}, {"BM"});
}
