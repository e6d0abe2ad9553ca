// CRC-32C (Castagnoli), as used by iSCSI, ext4 and TensorBoard's event files: a checksum against damage, not
// against forgery.
#pragma once

#include <cstdint>
#include <string_view>

namespace tandem {

std::uint32_t crc32c(std::string_view bytes);

}  // namespace tandem
