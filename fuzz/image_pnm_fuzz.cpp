// PPM and PGM files; one that can be used without decoding has the pixels of the decoded image.
#include "fuzz/fuzz_image.h"
#include "tandem/image/ppm_view.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tandem;
  constexpr std::int64_t max_pixels = 2048;
  if (const auto view = view_ppm({data, size}, max_pixels)) {
    const auto whole = decoded_or_none([&] {
      return decode_image({data, size}, "image", {.max_pixels = max_pixels});
    });
    require(whole && *whole == copy(*view));
    const std::string encoded = encode_ppm(*view);
    const auto again =
        view_ppm({reinterpret_cast<const std::uint8_t*>(encoded.data()), encoded.size()}, max_pixels);
    require(again && copy(*again) == *whole);
  }
  return fuzz_image({data, size}, {"P"});
}
