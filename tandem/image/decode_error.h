// Why an image file is not read.
#pragma once

#include <cstdint>
#include <string>

#include "tandem/core/error.h"

namespace tandem {

/// Why a file is not read.
enum class SkipKind : std::uint8_t {
  unknown_type,     ///< its name does not end like that of an image
  outside_classes,  ///< beside the class folders, not in one of them
  no_decoder,       ///< an image of a format that this build or machine cannot decode
  too_large,        ///< more pixels than allowed
  damaged,          ///< truncated, invalid, or not an image
  unreadable        ///< cannot be opened or read
};

/// "unknown type", "damaged", …
const char* name_of(SkipKind kind);

/// Thrown by the decoding functions; what() is one line that names the file.
class DecodeError : public Error {
 public:
  DecodeError(SkipKind kind, const std::string& text) : Error(text), kind_(kind) {}

  SkipKind kind() const { return kind_; }

 private:
  SkipKind kind_;
};

/// The kind of a DecodeError; any other Error means that the file cannot be opened or read.
SkipKind skip_kind(const Error& error);

}  // namespace tandem
