#include "tandem/files/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "tandem/core/check.h"

namespace tandem {
namespace {

class Inflater {
 public:
  Inflater() { expect(inflateInit2(&stream_, gzip_only + MAX_WBITS) == Z_OK); }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  z_stream& stream() { return stream_; }

 private:
  static constexpr int gzip_only = 16;
  z_stream stream_{};
};

}  // namespace

bool is_gzip(std::string_view bytes) {
  return bytes.starts_with("\x1F\x8B");
}

std::string gunzip(std::string_view bytes, std::size_t max_bytes, const std::string& name) {
  check(is_gzip(bytes), "[gunzip] {}: not a gzip file", name);
  Inflater inflater;
  z_stream& stream = inflater.stream();
  std::vector<unsigned char> buffer(std::size_t{1} << 16);
  std::string result;
  std::string_view rest = bytes;  // not yet passed to zlib
  int status = Z_OK;
  while (true) {
    if (stream.avail_in == 0) {
      if (rest.empty()) break;
      const std::size_t given = std::min<std::size_t>(rest.size(), std::numeric_limits<uInt>::max());
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(rest.data()));
      stream.avail_in = static_cast<uInt>(given);
      rest.remove_prefix(given);
    }
    if (status == Z_STREAM_END) expect(inflateReset(&stream) == Z_OK);  // another member follows
    do {
      stream.next_out = buffer.data();
      stream.avail_out = static_cast<uInt>(buffer.size());
      status = inflate(&stream, Z_NO_FLUSH);
      check(status == Z_OK || status == Z_STREAM_END || status == Z_BUF_ERROR,
            "[gunzip] {}: the gzip data is damaged", name);
      const std::size_t got = buffer.size() - stream.avail_out;
      check(got <= max_bytes - result.size(), "[gunzip] {}: decompresses to more than {} bytes", name,
            max_bytes);
      result.append(reinterpret_cast<const char*>(buffer.data()), got);
    } while (status != Z_STREAM_END && stream.avail_out == 0);
  }
  check(status == Z_STREAM_END, "[gunzip] {}: the gzip data is truncated", name);
  return result;
}

}  // namespace tandem
