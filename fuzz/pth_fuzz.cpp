// PyTorch's weight files, in a zip archive or of the format before: nothing is read from a pickle that calls
// a name outside the closed list. (pth_names() also finds those in other files of an archive.)
#include <algorithm>

#include "fuzz/fuzz_tensors.h"
#include "tandem/files/pickle_scan.h"
#include "tandem/files/pth.h"
#include "tandem/files/weights.h"
#include "tandem/files/zip.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tandem;
  const std::string_view input = text_of(data, size);
  if (weight_format(input) != WeightFormat::pth) return 0;
  const auto names = result_or_none([&] { return pth_names(input, "file"); });
  const auto file = result_or_none([&] { return parse_pth(input, "file"); });
  if (!file) return 0;
  require(names.has_value());
  const auto is_fine = [](const auto& name) { return !name.called || name.understood; };
  if (!is_zip(input))
    require(std::ranges::all_of(*names, is_fine));
  else
    for (const ZipEntry& entry : read_zip(input, "file")) {
      std::string unpacked;
      if (entry.name.ends_with("/data.pkl") && entry.name.find('/') + 9 == entry.name.size())
        require(
            std::ranges::all_of(scan_pickles(unpack_entry(entry, unpacked, "file"), "file").names, is_fine));
    }
  std::size_t bytes = 0;
  for (const NamedTensor& named : file->tensors) {
    require(named.tensor.is_contiguous());
    bytes += bytes_of(named.tensor).size();
  }
  require(bytes <= (std::size_t{64} << 20) + 16 * size);
  return 0;
}
