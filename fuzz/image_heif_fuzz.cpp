// HEIC files.
#include "fuzz/fuzz_image.h"

struct de265_decoder_context;

// Takes the place of libde265's function, which libheif calls for every image: decoding in the calling thread
// is several times as fast here as starting another one.
extern "C" [[gnu::visibility("default")]] int de265_start_worker_threads(de265_decoder_context*, int) {
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return tandem::fuzz_image({data, size}, {"ftyp"}, 4, tandem::Pixels::arbitrary);
}
