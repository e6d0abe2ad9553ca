#include "tandem/serve/request_images.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>

#include "tandem/core/check.h"
#include "tandem/text/utf8.h"

namespace tandem {
namespace {

// "multipart/form-data; boundary=x" without its parameters, in lower case.
std::string media_type(std::string_view content_type) {
  std::string_view type = content_type.substr(0, content_type.find(';'));
  while (type.ends_with(' ') || type.ends_with('\t')) type.remove_suffix(1);
  return lower_case(type);
}

// The value of a parameter, such as boundary="x", without its quotes; none: it is not there.
std::optional<std::string> parameter(std::string_view text, std::string_view name) {
  std::size_t at = text.find(';');
  while (at != std::string_view::npos && at < text.size()) {
    ++at;
    while (at < text.size() && (text[at] == ' ' || text[at] == '\t')) ++at;
    const std::size_t equals = text.find('=', at);
    if (equals == std::string_view::npos) return std::nullopt;
    const std::string_view found = text.substr(at, equals - at);
    std::string value;
    at = equals + 1;
    if (at < text.size() && text[at] == '"') {
      for (++at; at < text.size() && text[at] != '"'; ++at) {
        if (text[at] == '\\' && at + 1 < text.size()) ++at;
        value += text[at];
      }
      at = text.find(';', at);
    } else {
      const std::size_t end = std::min(text.find(';', at), text.size());
      value = text.substr(at, end - at);
      while (value.ends_with(' ') || value.ends_with('\t')) value.pop_back();
      at = end;
    }
    if (equal_ignoring_case(found, name)) return value;
  }
  return std::nullopt;
}

void add(RequestImages& all, std::string name, std::string_view bytes) {
  check(all.images.size() < max_request_images, "[serve] expected at most {} images in one request",
        max_request_images);
  all.images.push_back({std::move(name), bytes});
}

// ---- multipart/form-data ----

// The value of Content-Disposition in the header of a part.
std::string_view disposition(std::string_view header) {
  constexpr std::string_view name = "content-disposition:";
  while (!header.empty()) {
    const std::size_t end = std::min(header.find("\r\n"), header.size());
    const std::string_view line = header.substr(0, end);
    if (line.size() > name.size() && equal_ignoring_case(line.substr(0, name.size()), name))
      return line.substr(name.size());
    header.remove_prefix(std::min(end + 2, header.size()));
  }
  return {};
}

RequestImages form_images(std::string_view body, std::string_view content_type) {
  constexpr std::size_t max_boundary = 70, max_part_header = 4096;
  const auto boundary = parameter(content_type, "boundary");
  check(boundary && !boundary->empty() && boundary->size() <= max_boundary,
        "[serve] expected multipart/form-data with a boundary of 1 to {} characters", max_boundary);
  const std::string first = "--" + *boundary, next = "\r\n--" + *boundary;
  check(body.starts_with(first), "[serve] expected a form that begins with its boundary");
  body.remove_prefix(first.size());
  RequestImages all;
  while (!body.starts_with("--")) {
    const std::size_t header_end = body.substr(0, max_part_header).find("\r\n\r\n");
    check(body.starts_with("\r\n") && header_end != std::string_view::npos,
          "[serve] expected a part of a form with a header of at most {} bytes", max_part_header);
    const std::string_view header = body.substr(2, header_end - std::min<std::size_t>(header_end, 2));
    const std::size_t begin = header_end + 4, end = body.find(next, begin);
    check(end != std::string_view::npos,
          "[serve] expected a form that ends with its boundary, got one cut short");
    if (auto name = parameter(disposition(header), "filename"))
      add(all, one_line(*name), body.substr(begin, end - begin));
    body.remove_prefix(end + next.size());
  }
  return all;
}

// ---- JSON ----

// Accepts {"images": ["…", …]} and nothing else, so that no other structure takes memory.
class ImagesHandler : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit ImagesHandler(RequestImages& all) : all_(all) {}

  bool start_object(std::size_t) override { return advance(Place::begin, Place::object); }
  bool key(string_t& name) override { return name == "images" && advance(Place::object, Place::key); }
  bool start_array(std::size_t) override { return advance(Place::key, Place::array); }
  bool string(string_t& text) override {
    if (place_ != Place::array) return false;
    all_.decoded.push_back(decode_base64(text));
    add(all_, "", all_.decoded.back());
    return true;
  }
  bool end_array() override { return advance(Place::array, Place::after); }
  bool end_object() override { return advance(Place::after, Place::end); }
  bool null() override { return false; }
  bool boolean(bool) override { return false; }
  bool number_integer(number_integer_t) override { return false; }
  bool number_unsigned(number_unsigned_t) override { return false; }
  bool number_float(number_float_t, const string_t&) override { return false; }
  bool binary(binary_t&) override { return false; }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception&) override {
    return false;
  }

 private:
  enum class Place { begin, object, key, array, after, end };
  bool advance(Place from, Place to) {
    if (place_ != from) return false;
    place_ = to;
    return true;
  }

  RequestImages& all_;
  Place place_ = Place::begin;
};

RequestImages json_images(const std::string& body) {
  RequestImages all;
  ImagesHandler handler(all);
  check(nlohmann::json::sax_parse(body, &handler),
        "[serve] expected JSON as {{\"images\": [\"base64\", ...]}}");
  return all;
}

constexpr std::array<std::int8_t, 256> make_base64_values() {
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::array<std::int8_t, 256> values{};
  values.fill(-1);
  for (std::size_t i = 0; i < digits.size(); ++i)
    values[static_cast<unsigned char>(digits[i])] = static_cast<std::int8_t>(i);
  return values;
}

}  // namespace

std::string decode_base64(std::string_view text) {
  static constexpr std::array<std::int8_t, 256> values = make_base64_values();
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  const std::string_view digits = text.substr(0, text.size() - padding);
  bool is_valid = text.size() % 4 == 0;
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  std::uint32_t bits = 0;
  int count = 0;
  for (const char digit : digits) {
    const int value = values[static_cast<unsigned char>(digit)];
    is_valid = is_valid && value >= 0;
    bits = bits << 6 | static_cast<std::uint32_t>(value & 63);
    if ((count += 6) < 8) continue;
    count -= 8;
    bytes += static_cast<char>(bits >> count & 255);
  }
  check(is_valid && (bits & ((1u << count) - 1)) == 0, "[serve] expected base64, got something else");
  return bytes;
}

bool has_image_type(const HttpRequest& request) {
  const std::string type = media_type(request.field("content-type").value_or(""));
  return type.starts_with("image/") || type == "application/octet-stream" || type == "multipart/form-data" ||
         type == "application/json";
}

RequestImages request_images(const HttpRequest& request) {
  const std::string_view content_type = request.field("content-type").value_or("");
  const std::string type = media_type(content_type);
  RequestImages all;
  if (type == "multipart/form-data")
    all = form_images(request.body, content_type);
  else if (type == "application/json")
    all = json_images(request.body);
  else
    add(all, "", request.body);
  check(!all.images.empty(), "[serve] expected an image in the request, got none");
  return all;
}

}  // namespace tandem
