// The pages and the description of the interface: files that the program carries with it.
#pragma once

#include <string_view>

#include "tandem/serve/http_message.h"

namespace tandem {

// cmake/TandemEmbed.cmake writes the definitions.
extern const std::string_view embedded_serve_page;    // tandem/serve/page.html
extern const std::string_view embedded_openapi;       // tandem/serve/openapi.json
extern const std::string_view embedded_watch_list;    // tandem/serve/watch.html
extern const std::string_view embedded_watch_style;   // tandem/serve/watch.css
extern const std::string_view embedded_watch_script;  // tandem/serve/watch.js

// The page with a policy that allows its own script and style, by their hashes, and nothing else.
HttpResponse drop_page();

// "'sha256-…'" of the text between <tag> and </tag>, for a content security policy. Throws InternalError
// without such a tag.
std::string policy_hash(std::string_view page, std::string_view tag);

}  // namespace tandem
