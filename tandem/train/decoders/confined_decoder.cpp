#include "tandem/train/decoders/confined_decoder.h"

#include <utility>

namespace tandem {
namespace {

std::string_view as_text(std::span<const std::uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

// A process for one image: an idle one, else a new one.
class ConfinedDecoder::Lease {
 public:
  explicit Lease(ConfinedDecoder& owner) : owner_(owner) {
    const std::lock_guard lock(owner_.mutex_);
    if (owner_.idle_.empty()) owner_.idle_.push_back(std::make_unique<DecodeProcess>(owner_.options_));
    process_ = std::move(owner_.idle_.back());
    owner_.idle_.pop_back();
  }
  ~Lease() {
    const std::lock_guard lock(owner_.mutex_);
    owner_.idle_.push_back(std::move(process_));
  }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  DecodeProcess* operator->() const { return process_.get(); }

 private:
  ConfinedDecoder& owner_;
  std::unique_ptr<DecodeProcess> process_;
};

ConfinedDecoder::ConfinedDecoder(DecodeProcessOptions options) : options_(std::move(options)) {
  Lease(*this)->probe();
}

ImageInfo ConfinedDecoder::read_image_info(std::span<const std::uint8_t> bytes, std::string_view name,
                                           const LoadOptions& options) {
  return Lease(*this)->read_image_info(as_text(bytes), name, options);
}

Image ConfinedDecoder::decode_image(std::span<const std::uint8_t> bytes, std::string_view name,
                                    const LoadOptions& options) {
  return Lease(*this)->decode_image(as_text(bytes), name, options);
}

Image ConfinedDecoder::decode_scaled(std::span<const std::uint8_t> bytes, std::string_view name,
                                     const PixelBox& box, std::int64_t min_height, std::int64_t min_width,
                                     const LoadOptions& options) {
  return Lease(*this)->decode_scaled(as_text(bytes), name, box, min_height, min_width, options);
}

}  // namespace tandem
