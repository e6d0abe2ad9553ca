// tandem fetch of two small files, for tests: the files of the real data sets are large and not in the tree.
// fetch_small CACHE ADDRESS|FOLDER
#include <fmt/format.h>

#include <exception>
#include <string>

#include "tandem/files/fetch.h"
#include "tandem/files/sha256.h"
#include "tandem/text/message.h"
#include "tandem/text/utf8.h"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::string origin = argv[2], images(10000, 'i'), labels(100, 'l');
  const bool is_address = origin.starts_with("http:");
  const tandem::FetchSource source{
      .name = "small",
      .files = {{"a-images-idx3-ubyte", images.size(), tandem::sha256_hex(images)},
                {"b-labels-idx1-ubyte", labels.size(), tandem::sha256_hex(labels)}},
      .address = is_address ? origin : "",
      .address_suffix = ""};
  try {
    tandem::FetchOptions options{.from = is_address ? "" : origin, .cache = argv[1]};
    options.on_message = [](const std::string& line) { tandem::print_message("{}\n", line); };
    tandem::fetch_dataset(source, options);
    return 0;
  } catch (const std::exception& error) {
    tandem::print_message("tandem: error: {}\n", tandem::one_line(error.what()));
    return 1;
  }
}
