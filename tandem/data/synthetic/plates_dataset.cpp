#include "tandem/data/synthetic/plates_dataset.h"

#include <fmt/format.h>

#include <memory>

#include "tandem/data/synthetic/plates.h"

namespace tandem {
namespace {

constexpr std::int64_t validation_plates = 200, test_plates = 500;
constexpr std::uint64_t test_seed = 1, first_test = first_test_plate + 1000000;

}  // namespace

Image PlatesDataset::image(std::int64_t index) const {
  return render_plate(seed_, first_ + static_cast<std::uint64_t>(index / 2), index % 2 == 1);
}

std::vector<std::string> PlatesDataset::classes() const {
  return {plate_class(false), plate_class(true)};
}

std::string PlatesDataset::describe(std::int64_t index) const {
  return fmt::format("{} {}", plate_class(index % 2 == 1), index / 2);
}

PhotoSplit plates_split(std::uint64_t seed, std::int64_t train) {
  return {.train = std::make_shared<const PlatesDataset>(seed, 0, train),
          .validation = std::make_shared<const PlatesDataset>(seed, first_test_plate, validation_plates),
          .test = std::make_shared<const PlatesDataset>(test_seed, first_test, test_plates)};
}

}  // namespace tandem
