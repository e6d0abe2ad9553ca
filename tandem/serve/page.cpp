#include "tandem/serve/page.h"

#include <fmt/format.h>

#include <string>

#include "tandem/core/error.h"
#include "tandem/files/sha256.h"
#include "tandem/report/pictures.h"
#include "tandem/text/parse_number.h"

namespace tandem {

std::string policy_hash(std::string_view page, std::string_view tag) {
  const std::string opening = fmt::format("<{}>", tag), closing = fmt::format("</{}>", tag);
  const std::size_t begin = page.find(opening), end = page.find(closing);
  expect(begin != std::string_view::npos && end != std::string_view::npos && begin < end);
  const std::string hex = sha256_hex(page.substr(begin + opening.size(), end - begin - opening.size()));
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2)
    bytes += static_cast<char>(*parse_number<unsigned char>(std::string_view(hex).substr(i, 2), 16));
  return fmt::format("'sha256-{}'", base64(bytes));
}

HttpResponse drop_page() {
  return {
      .content_type = "text/html; charset=utf-8",
      .body = std::string(embedded_serve_page),
      .fields = {{"Content-Security-Policy",
                  fmt::format("default-src 'none'; script-src {}; style-src {}; connect-src 'self'; img-src "
                              "blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
                              policy_hash(embedded_serve_page, "script"),
                              policy_hash(embedded_serve_page, "style"))}}};
}

}  // namespace tandem
