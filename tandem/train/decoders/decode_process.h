// DecodeProcess: a process that decodes images of strangers. Decoders are large C libraries that read hostile
// bytes; in a process of their own, without files, network and rights and with limited memory and time, a
// crash costs one image.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/image/decode.h"
#include "tandem/process/child_process.h"
#include "tandem/train/decoders/decode_protocol.h"
#include "tandem/train/decoders/input_reader.h"

namespace tandem {

struct DecodeProcessOptions {
  std::string program;                   // that calls run_decoder_if_asked(); empty: this one
  std::int64_t max_pixels = 50'000'000;  // of an image, from its header
  std::int64_t timeout_ms = 20'000;      // for one image
};

// For one thread at a time. The process is started when it is first needed and after its end.
class DecodeProcess {
 public:
  explicit DecodeProcess(DecodeProcessOptions options);

  // As InputReader::read(). Throws DecodeError, also for an image that ends the process twice or takes too
  // long, and Error if the process cannot be confined.
  void read_input(std::string_view bytes, const InputFormat& format, std::uint8_t* out);
  // As the functions of image/decode.h, with at most the pixels of both options.
  Image decode_image(std::string_view bytes, std::string_view name, const LoadOptions& options);
  ImageInfo read_image_info(std::string_view bytes, std::string_view name, const LoadOptions& options);
  Image decode_scaled(std::string_view bytes, std::string_view name, const PixelBox& box,
                      std::int64_t min_height, std::int64_t min_width, const LoadOptions& options);
  // Starts the process; throws Error if it cannot be started.
  void start();
  // Decodes a pixel. Throws Error, with the reason, if the process does not start or cannot be confined here.
  void probe();
  pid_t pid() const { return process_.pid(); }

 private:
  enum class Transfer { done, ended, late };
  // The answer is in reply_ and payload_.
  Transfer ask(detail::DecodeRequest request, std::string_view transform, std::string_view image);
  void ask_twice(const detail::DecodeRequest& request, std::string_view transform, std::string_view image,
                 std::string_view name);
  detail::DecodeRequest request_of(detail::DecodeTask task, const LoadOptions& options) const;
  Image take_image();
  Transfer send(const void* bytes, std::size_t count, std::int64_t end_ns) const;
  Transfer receive(void* bytes, std::size_t count, std::int64_t end_ns) const;
  void end();

  DecodeProcessOptions options_;
  ChildProcess process_;
  Descriptor socket_;
  detail::DecodeReply reply_{};
  std::vector<std::uint8_t> payload_;
};

}  // namespace tandem
