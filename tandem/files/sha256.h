// SHA-256 (FIPS 180-4): the fingerprint by which files are believed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace tandem {

// update() any number of times with pieces of any size, then hex_digest() once.
class Sha256 {
 public:
  void update(std::string_view bytes);
  void update(std::span<const std::byte> bytes) {
    update({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  std::string hex_digest();  // 64 lower-case digits

 private:
  std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<unsigned char, 64> block_{};  // the bytes that do not fill a block yet
  std::size_t held_ = 0;
  std::uint64_t length_ = 0;
};

std::string sha256_hex(std::string_view bytes);

// Of a file of any size, read piece by piece; an Error when it cannot be read.
std::string sha256_of_file(const std::filesystem::path& path);

}  // namespace tandem
