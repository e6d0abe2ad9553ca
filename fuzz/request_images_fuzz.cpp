// Bodies of requests: forms, JSON with base64, and images as they are. The input is the content type, a line
// feed, and the body.
#include <algorithm>

#include "fuzz/fuzz.h"
#include "tandem/core/error.h"
#include "tandem/serve/request_images.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tandem;
  const std::string_view input = text_of(data, size);
  const std::size_t line = std::min(input.find('\n'), input.size());
  HttpRequest request{.method = HttpMethod::post, .path = "/v1/predict"};
  request.fields.push_back({"content-type", std::string(input.substr(0, line))});
  request.body = input.substr(std::min(line + 1, input.size()));
  if (!has_image_type(request)) return 0;  // is refused before
  try {
    const RequestImages found = request_images(request);
    require(!found.images.empty() && found.images.size() <= max_request_images);
    std::size_t bytes = 0;
    for (const RequestImage& image : found.images) {
      bytes += image.bytes.size();
      require(image.name.find_first_of("\r\n\0") == std::string::npos);
      const auto holds = [&](std::string_view text) {
        return image.bytes.data() >= text.data() &&
               image.bytes.data() + image.bytes.size() <= text.data() + text.size();
      };
      require(holds(request.body) || std::ranges::any_of(found.decoded, holds));
    }
    require(bytes <= request.body.size());
  } catch (const Error&) {
  }
  return 0;
}
