#include "tandem/train/decoders/decode_host.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include "tandem/core/check.h"
#include "tandem/core/host_memory.h"
#include "tandem/core/parallel.h"
#include "tandem/image/decode.h"
#include "tandem/process/sandbox.h"
#include "tandem/text/message.h"
#include "tandem/text/parse_number.h"
#include "tandem/train/decoders/decode_protocol.h"
#include "tandem/train/decoders/input_reader.h"

namespace tandem {
namespace {

// Memory of a larger image is not kept for the next one.
constexpr std::size_t max_kept_bytes = 4 << 20;

// False at the end of the stream.
bool read_all(int fd, void* to, std::size_t bytes) {
  auto* next = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t count = ::read(fd, next, bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    next += count;
    bytes -= static_cast<std::size_t>(count);
  }
  return true;
}

bool write_all(int fd, const void* from, std::size_t bytes) {
  const auto* next = static_cast<const char*>(from);
  while (bytes > 0) {
    const ssize_t count = ::send(fd, next, bytes, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    next += count;
    bytes -= static_cast<std::size_t>(count);
  }
  return true;
}

bool write_error(int fd, detail::DecodeReply reply, std::string_view text) {
  text = text.substr(0, detail::max_error_bytes);
  reply.bytes = text.size();
  return write_all(fd, &reply, sizeof reply) && write_all(fd, text.data(), text.size());
}

class DecodeHost {
 public:
  explicit DecodeHost(int fd) : fd_(fd) {}

  void run() {
    detail::DecodeRequest request{};
    while (read_all(fd_, &request, sizeof request)) {
      if (!detail::is_possible(request)) return;
      std::string transform(request.transform_bytes, '\0');
      image_.resize(request.image_bytes);
      if (!read_all(fd_, transform.data(), transform.size()) || !read_all(fd_, image_.data(), image_.size()))
        return;
      if (!answer(request, transform)) return;
      if (image_.capacity() > max_kept_bytes) image_ = std::string();
      if (reader_ && reader_->kept_bytes() > max_kept_bytes) reader_.reset();
    }
  }

 private:
  bool answer(const detail::DecodeRequest& request, const std::string& transform) {
    const auto answer_error = [this](SkipKind kind, std::string_view text) {
      return write_error(
          fd_, {.status = detail::DecodeStatus::image_error, .error_kind = static_cast<std::uint32_t>(kind)},
          text);
    };
    try {
      switch (request.task) {
        case detail::DecodeTask::input:
          return answer_input(request, transform);
        case detail::DecodeTask::picture:
          return answer_picture(decode_image(image_bytes(), image_name, load_options(request)));
        case detail::DecodeTask::info:
          return answer_info(read_image_info(image_bytes(), image_name, load_options(request)));
        case detail::DecodeTask::box:
          return answer_picture(decode_scaled(image_bytes(), image_name,
                                              {request.x, request.y, request.width, request.height},
                                              request.min_height, request.min_width, load_options(request)));
      }
      return false;
    } catch (const Error& error) {
      return answer_error(skip_kind(error), image_error(error));
    } catch (const std::exception&) {  // no memory within the limit
      return answer_error(SkipKind::too_large, "needs more memory than is allowed");
    }
  }

  bool answer_input(const detail::DecodeRequest& request, const std::string& transform) {
    const InputFormat format{request.height, request.width, request.channels, transform};
    if (!reader_ || reader_->format() != format) reader_.emplace(format);
    pixels_.resize(format.bytes());
    reader_->read(image_, request.max_pixels, pixels_.data());
    const detail::DecodeReply reply{.bytes = pixels_.size()};
    return write_all(fd_, &reply, sizeof reply) && write_all(fd_, pixels_.data(), pixels_.size());
  }

  bool answer_picture(const Image& picture) const {
    const detail::DecodeReply reply{.height = picture.height,
                                    .width = picture.width,
                                    .channels = picture.channels,
                                    .bytes = picture.pixels.size()};
    return write_all(fd_, &reply, sizeof reply) &&
           write_all(fd_, picture.pixels.data(), picture.pixels.size());
  }

  bool answer_info(const ImageInfo& info) const {
    const detail::DecodeReply reply{.height = info.height, .width = info.width, .channels = info.channels};
    return write_all(fd_, &reply, sizeof reply);
  }

  static LoadOptions load_options(const detail::DecodeRequest& request) {
    return {
        .max_pixels = request.max_pixels, .rgb = request.rgb != 0, .plain_chroma = request.plain_chroma != 0};
  }
  std::span<const std::uint8_t> image_bytes() const {
    return {reinterpret_cast<const std::uint8_t*>(image_.data()), image_.size()};
  }

  int fd_;
  std::string image_;
  std::vector<std::uint8_t> pixels_;
  std::optional<InputReader> reader_;
};

}  // namespace

void answer_decode_requests(int fd) {
  DecodeHost(fd).run();
}

std::optional<int> run_decoder_if_asked(int argc, char** argv) {
  if (argc < 3 || std::string_view(argv[1]) != "decode-images") return std::nullopt;
  const auto fd = parse_number<int>(argv[2]);
  if (!fd || *fd <= 2) {
    print_message("tandem: error: [decode-images] expected a descriptor, got '{}'\n", argv[2]);
    return 1;
  }
  try {
    for (const char* const format : {"WebP", "TIFF", "HEIC"}) can_decode(format);  // opens their libraries
    try {
      enter_sandbox(SandboxOptions::parse({argv + 3, argv + argc}));
    } catch (const Error& error) {
      write_error(*fd, {.status = detail::DecodeStatus::not_confined}, error.what());
      ::close(*fd);  // who sends more than the socket holds need not wait for the end of this process
      return 1;
    }
    const ThreadLimit one(1);
    return_freed_memory();
    clear_freed_memory();  // images of others
    answer_decode_requests(*fd);
    return 0;
  } catch (const std::exception& error) {
    print_message("image decoder: {}\n", error.what());  // another one replaces it: no error of the run
    return 1;
  }
}

}  // namespace tandem
