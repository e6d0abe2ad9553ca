// Changes the archive and repairs its checksums, or changes what one entry contains.
#include "fuzz/fuzz_zip.h"

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  using namespace tandem;
  if (seed % 2 == 0) {
    ZipContents all = unpacked_zip(data, size);
    if (!all.empty()) {
      auto& [name, contents] = all[seed / 2 % all.size()];
      std::string& changed = seed % 16 == 0 ? name : contents;
      const std::size_t before = changed.size();
      changed.resize(before + 64);
      changed.resize(LLVMFuzzerMutate(reinterpret_cast<std::uint8_t*>(changed.data()), before, before + 64));
      if (const std::string archive = packed_zip(all); archive.size() <= max_size)
        return put_input(data, max_size, archive);
    }
  }
  size = LLVMFuzzerMutate(data, size, max_size);
  if (seed % 8 != 1) repair_zip(data, size);
  return size;
}
