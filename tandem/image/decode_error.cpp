#include "tandem/image/decode_error.h"

namespace tandem {

const char* name_of(SkipKind kind) {
  switch (kind) {
    case SkipKind::unknown_type:
      return "unknown type";
    case SkipKind::outside_classes:
      return "outside the class folders";
    case SkipKind::no_decoder:
      return "no decoder";
    case SkipKind::too_large:
      return "too large";
    case SkipKind::damaged:
      return "damaged";
    case SkipKind::unreadable:
      break;
  }
  return "cannot be opened";
}

SkipKind skip_kind(const Error& error) {
  const auto* const decoding = dynamic_cast<const DecodeError*>(&error);
  return decoding ? decoding->kind() : SkipKind::unreadable;
}

}  // namespace tandem
