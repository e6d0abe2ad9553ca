// The built-in photographs: clean and dirty plates on tables, drawn from the seed. Picture `number` is a
// function of the seed, the number and whether it is dirty alone, the same bits on every machine. Plates of
// both kinds vary alike in table, light, size, place, tilt, colour and decoration, so that no colour tells
// them apart.
#pragma once

#include <cstdint>
#include <filesystem>

#include "tandem/image/image.h"

namespace tandem {

// An RGB picture of that side, 8 to 4096 pixels.
Image draw_plate(std::uint64_t seed, std::uint64_t number, bool dirty, std::int64_t size = 480);

struct PlatesOptions {
  std::int64_t train = 20;  // of each kind
  std::int64_t test = 500;  // in all, the kinds in turn
  std::uint64_t seed = 1;
  std::int64_t size = 480;
};

// Test pictures have numbers from here on: they are the same however many there are to train with.
inline constexpr std::uint64_t first_test_plate = std::uint64_t{1} << 32;

// Writes ROOT/train/clean, ROOT/train/dirty and ROOT/test/clean, ROOT/test/dirty, PNG files named by their
// numbers. `root` must not exist or be empty.
void write_plates(const std::filesystem::path& root, const PlatesOptions& options = {});

}  // namespace tandem
