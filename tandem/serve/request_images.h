// The images in the body of a request: the body itself, the files of a form, or base64 in JSON.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/serve/http_message.h"

namespace tandem {

// In one request.
inline constexpr std::size_t max_request_images = 256;

struct RequestImage {
  std::string name;        // of a form's file; empty otherwise. For the answer only, never a path
  std::string_view bytes;  // in the request's body, or in RequestImages::decoded
};

struct RequestImages {
  std::vector<RequestImage> images;
  std::deque<std::string> decoded;  // of base64
};

// Whether a body of this type can contain images.
bool has_image_type(const HttpRequest& request);

// image/* and application/octet-stream: one image; multipart/form-data: every part with a file name;
// application/json: {"images": ["base64", …]}. `request` must outlive the result. Throws Error for a body
// that is not what its type says, and for no or more than max_request_images images.
RequestImages request_images(const HttpRequest& request);

// Throws Error for anything but standard base64 with its padding.
std::string decode_base64(std::string_view text);

}  // namespace tandem
