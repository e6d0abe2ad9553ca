#include "tandem/data/cifar10.h"

#include <cstdint>
#include <string>
#include <vector>

#include "tandem/core/check.h"
#include "tandem/core/parallel.h"
#include "tandem/files/read_file.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t side = 32, plane = side * side, channels = 3, record = 1 + channels * plane;
constexpr std::uint64_t published_size = 10000 * record;  // of every file

const std::vector<std::string>& class_names() {
  static const std::vector<std::string> names{"airplane", "automobile", "bird",  "cat",  "deer",
                                              "dog",      "frog",       "horse", "ship", "truck"};
  return names;
}

// The records of several files as images with interleaved channels.
ImageSet load_records(const fs::path& folder, const std::vector<std::string>& names) {
  std::string bytes;
  std::vector<std::int32_t> labels;
  for (const std::string& name : names) {
    const fs::path path = folder / name;
    const std::string file = read_file("cifar10", path, published_size);
    const auto count = static_cast<std::int64_t>(file.size()) / record;
    check(count > 0 && static_cast<std::int64_t>(file.size()) == count * record,
          "[cifar10] {}: expected records of {} bytes, got a file of {} bytes", path.string(), record,
          file.size());
    for (std::int64_t i = 0; i < count; ++i) {
      const auto label = static_cast<std::uint8_t>(file[static_cast<std::size_t>(i * record)]);
      check(label < class_names().size(), "[cifar10] {}: expected labels from 0 to {}, got {} for image {}",
            path.string(), class_names().size() - 1, label, i);
      labels.push_back(label);
    }
    bytes += file;
  }
  const auto count = static_cast<std::int64_t>(labels.size());
  ImageSet set{.images = Tensor::empty({count, side, side, channels}, DType::u8),
               .labels = Tensor::from(labels, {count}),
               .classes = class_names()};
  auto* const pixels = set.images.data<std::uint8_t>();
  parallel_for(count, 64, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      for (std::int64_t c = 0; c < channels; ++c)
        for (std::int64_t p = 0; p < plane; ++p)
          pixels[(i * plane + p) * channels + c] =
              static_cast<std::uint8_t>(bytes[static_cast<std::size_t>(i * record + 1 + c * plane + p)]);
  });
  return set;
}

}  // namespace

DataSplit load_cifar10(const fs::path& folder) {
  std::vector<std::string> train;
  for (int i = 1; i <= 5; ++i) train.push_back("data_batch_" + std::to_string(i) + ".bin");
  return {.name = "cifar10",
          .train = load_records(folder, train),
          .test = load_records(folder, {"test_batch.bin"})};
}

FetchSource cifar10_source() {
  return {.name = "cifar10",
          .files = {{"data_batch_1.bin", published_size,
                     "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5"},
                    {"data_batch_2.bin", published_size,
                     "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed"},
                    {"data_batch_3.bin", published_size,
                     "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67"},
                    {"data_batch_4.bin", published_size,
                     "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48"},
                    {"data_batch_5.bin", published_size,
                     "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add"},
                    {"test_batch.bin", published_size,
                     "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b"}},
          .archive = {"cifar-10-binary.tar.gz", 170052171,
                      "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"},
          .address = "https://www.cs.toronto.edu/~kriz/",
          .address_suffix = ""};
}

}  // namespace tandem
