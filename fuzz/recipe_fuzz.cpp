// The grammars of transforms, also with operations of the user, and of filter kernels: the text of what was
// read gives the same again.
#include <string>

#include "fuzz/fuzz.h"
#include "tandem/augment/own_operation.h"
#include "tandem/augment/photo_filter.h"
#include "tandem/augment/transform.h"

namespace tandem {
namespace {

// One for each number of arguments.
bool add_own_operations() {
  for (int arguments = 0; arguments <= 2; ++arguments)
    register_augmentation({.name = "own" + std::to_string(arguments),
                           .summary = "of the user",
                           .arguments = arguments,
                           .apply = [](const AugmentCall&) {}});
  for (const PhotoFit fit : {PhotoFit::resize, PhotoFit::center, PhotoFit::letterbox})
    require(evaluation_transform(32, fit).photo().width == 32);
  return transform_help().find("own2") != std::string::npos;
}

void check_transform(std::string_view text) {
  static const bool has_own = add_own_operations();
  require(has_own);
  const auto transform = result_or_none([&] { return Transform::parse(text, 32); });
  if (!transform) return;
  const std::string written = transform->to_string();
  require(Transform::parse(written, 32) == *transform);
  const Transform one_size = transform->for_one_size();
  require(one_size.resizes() || Transform::parse(one_size.to_string(), 32).for_one_size() == one_size);
  const ImageSize size = transform->output_size({.height = 28, .width = 20, .channels = 1});
  require(transform->resizes() ? size.height == 32 && size.width == 32
                               : size.height == 28 && size.width == 20);
  if (transform->resizes())
    require(transform->for_photos(64).photo().height == 64);
  else
    require((transform->to_string() == "none") == transform->pixels().empty());
}

void check_kernel(std::string_view text) {
  if (const auto filter = result_or_none([&] { return parse_filter(text, false); }))
    require(filter->kernel.rank() == 2 && filter->kernel.numel() > 0);
  if (const auto kernel = result_or_none([&] { return blur_kernel(text); })) {
    require(kernel->height >= 1 && kernel->height <= max_blur_side);
    require(kernel->width >= 1 && kernel->width <= max_blur_side);
    require(blur_kernel(to_string(*kernel)) == *kernel);
  }
}

}  // namespace
}  // namespace tandem

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tandem::check_transform(tandem::text_of(data, size));
  tandem::check_kernel(tandem::text_of(data, size));
  return 0;
}
