// tandem fetch of two small files, for tests: the files of the real data sets are large and not in the tree.
// fetch_small CACHE ADDRESS|FOLDER
#include <fmt/format.h>

#include <exception>
#include <new>
#include <string>

#include "tandem/files/fetch.h"
#include "tandem/files/sha256.h"
#include "tandem/text/message.h"
#include "tandem/text/utf8.h"

namespace {

void fetch_small(const std::string& cache, const std::string& origin) {
  const std::string images(10000, 'i'), labels(100, 'l');
  const bool is_address = origin.starts_with("http:");
  const tandem::FetchSource source{
      .name = "small",
      .files = {{"a-images-idx3-ubyte", images.size(), tandem::sha256_hex(images)},
                {"b-labels-idx1-ubyte", labels.size(), tandem::sha256_hex(labels)}},
      .address = is_address ? origin : "",
      .address_suffix = ""};
  tandem::FetchOptions options{.from = is_address ? "" : origin, .cache = cache};
  options.on_message = [](const std::string& line) { tandem::print_message("{}\n", line); };
  tandem::fetch_dataset(source, options);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  try {
    fetch_small(argv[1], argv[2]);
    return 0;
  } catch (const std::bad_alloc&) {  // as main() of the program does
    tandem::write_message("tandem: error: out of memory\n");
  } catch (const std::exception& error) {
    tandem::print_message("tandem: error: {}\n", tandem::one_line(error.what()));
  }
  return 1;
}
