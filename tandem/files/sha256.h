// SHA-256 (FIPS 180-4), which verifies downloaded files and checkpoints.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace tandem {

// Call update() any number of times with data of any size, then hex_digest() once.
class Sha256 {
 public:
  void update(std::string_view bytes);
  void update(std::span<const std::byte> bytes) {
    update({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  // 64 lower-case digits.
  std::string hex_digest();

 private:
  std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<unsigned char, 64> block_{};  // the start of an incomplete block
  std::size_t buffered_ = 0;               // bytes in block_
  std::uint64_t length_ = 0;
};

std::string sha256_hex(std::string_view bytes);

// Of a file of any size, which is not loaded as a whole. Throws Error if it cannot be read.
std::string sha256_of_file(const std::filesystem::path& path);

}  // namespace tandem
