#include "tandem/train/decoders/decode_process.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "tandem/core/check.h"
#include "tandem/core/clock.h"
#include "tandem/process/launch.h"
#include "tandem/process/sandbox.h"
#include "tandem/text/utf8.h"

namespace tandem {
namespace {

// Files of the system only, and memory for the copies that decoders make of an image.
SandboxOptions decoder_sandbox(int fd, std::int64_t max_pixels) {
  return {.allow_files = false,
          .readable = system_paths(),
          .descriptors = {fd},
          .memory_bytes = (std::int64_t{1} << 30) + 16 * max_pixels,
          .file_bytes = 1};
}

// The program's own settings alone: nothing of the user's environment reaches the decoders.
std::vector<std::string> decoder_environment() {
  std::vector<std::string> kept;
  for (const std::string_view name : {"LD_LIBRARY_PATH", "TANDEM_SIMD", "ASAN_OPTIONS", "TSAN_OPTIONS"})
    if (const char* const value = ::getenv(std::string(name).c_str()))
      kept.push_back(std::string(name) + "=" + value);
  return kept;
}

// Whether the socket can be used before `end_ns`.
bool is_ready(int fd, short events, std::int64_t end_ns) {
  while (true) {
    const std::int64_t left_ms = (end_ns - monotonic_ns()) / 1'000'000;
    pollfd ready{.fd = fd, .events = events, .revents = 0};
    if (left_ms <= 0) return false;
    if (::poll(&ready, 1, static_cast<int>(left_ms)) > 0) return true;
  }
}

[[noreturn]] void fail_decoding(SkipKind kind, std::string_view name, std::string_view reason) {
  throw DecodeError(kind, fmt::format("[decode] {}: {}", name, reason));
}

[[noreturn]] void fail_confining(std::string_view reason) {
  constexpr std::string_view prefix = "[sandbox] ";
  if (reason.starts_with(prefix)) reason.remove_prefix(prefix.size());
  fail("[decode] cannot confine the processes that decode images: {}", reason);
}

}  // namespace

DecodeProcess::DecodeProcess(DecodeProcessOptions options) : options_(std::move(options)) {
  constexpr std::int64_t most = std::int64_t{1} << 40;  // more is no limit, and its bytes can be computed
  options_.max_pixels = std::clamp<std::int64_t>(options_.max_pixels, 0, most);
  if (options_.program.empty()) options_.program = this_program();
}

void DecodeProcess::start() {
  int fds[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
    fail("[decode] cannot make a socket: {}", errno_message(errno));
  socket_ = Descriptor(fds[0]);
  const Descriptor theirs(fds[1]);
  std::vector<std::string> words{options_.program, "decode-images", std::to_string(theirs.get())};
  for (std::string& word : decoder_sandbox(theirs.get(), options_.max_pixels).to_words())
    words.push_back(std::move(word));
  process_ =
      ChildProcess(options_.program, words, {.fds = {theirs.get()}, .environment = decoder_environment()});
}

void DecodeProcess::probe() {
  try {
    decode_image("P5 1 1 255\n*", image_name, {});
  } catch (const DecodeError& error) {
    fail("[decode] the processes that decode images do not work here: {}", image_error(error));
  }
}

void DecodeProcess::end() {
  socket_.reset();
  process_ = ChildProcess();
}

DecodeProcess::Transfer DecodeProcess::send(const void* bytes, std::size_t count, std::int64_t end_ns) const {
  const auto* next = static_cast<const char*>(bytes);
  while (count > 0) {
    if (!is_ready(socket_.get(), POLLOUT, end_ns)) return Transfer::late;
    const ssize_t moved = ::send(socket_.get(), next, count, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (moved < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (moved <= 0) return Transfer::ended;
    next += moved;
    count -= static_cast<std::size_t>(moved);
  }
  return Transfer::done;
}

DecodeProcess::Transfer DecodeProcess::receive(void* bytes, std::size_t count, std::int64_t end_ns) const {
  auto* next = static_cast<char*>(bytes);
  while (count > 0) {
    if (!is_ready(socket_.get(), POLLIN, end_ns)) return Transfer::late;
    const ssize_t moved = ::recv(socket_.get(), next, count, MSG_DONTWAIT);
    if (moved < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (moved <= 0) return Transfer::ended;
    next += moved;
    count -= static_cast<std::size_t>(moved);
  }
  return Transfer::done;
}

DecodeProcess::Transfer DecodeProcess::ask(detail::DecodeRequest request, std::string_view transform,
                                           std::string_view image) {
  const std::int64_t end_ns = monotonic_ns() + options_.timeout_ms * 1'000'000;
  request.transform_bytes = static_cast<std::uint32_t>(transform.size());
  request.image_bytes = image.size();
  Transfer done = send(&request, sizeof request, end_ns);
  if (done == Transfer::done) done = send(transform.data(), transform.size(), end_ns);
  if (done == Transfer::done) done = send(image.data(), image.size(), end_ns);
  // A process that could not be confined has said so and ended.
  if (done != Transfer::late) done = receive(&reply_, sizeof reply_, end_ns);
  if (done != Transfer::done) return done;
  if (!detail::is_possible(reply_, request)) return Transfer::ended;
  payload_.resize(reply_.bytes);
  return receive(payload_.data(), payload_.size(), end_ns);
}

// A process that was ended from outside, or by the image before, is replaced without anybody noticing.
void DecodeProcess::ask_twice(const detail::DecodeRequest& request, std::string_view transform,
                              std::string_view image, std::string_view name) {
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (!socket_) start();
    const Transfer done = ask(request, transform, image);
    if (done == Transfer::done) {
      if (reply_.status == detail::DecodeStatus::done) return;
      const std::string text = one_line({reinterpret_cast<const char*>(payload_.data()), payload_.size()});
      if (reply_.status == detail::DecodeStatus::image_error)
        fail_decoding(static_cast<SkipKind>(reply_.error_kind), name, text);
      end();
      fail_confining(text);
    }
    end();
    if (done == Transfer::late) fail_decoding(SkipKind::damaged, name, "takes too long to decode");
  }
  fail_decoding(SkipKind::damaged, name, "its decoder crashed");
}

void DecodeProcess::read_input(std::string_view bytes, const InputFormat& format, std::uint8_t* out) {
  ask_twice({.task = detail::DecodeTask::input,
             .height = format.height,
             .width = format.width,
             .channels = format.channels,
             .max_pixels = options_.max_pixels},
            format.transform, bytes, image_name);
  std::memcpy(out, payload_.data(), payload_.size());
}

detail::DecodeRequest DecodeProcess::request_of(detail::DecodeTask task, const LoadOptions& options) const {
  return {.task = task,
          .max_pixels = std::clamp<std::int64_t>(options.max_pixels, 0, options_.max_pixels),
          .rgb = options.rgb ? 1u : 0u,
          .plain_chroma = options.plain_chroma ? 1u : 0u};
}

Image DecodeProcess::take_image() {
  return {reply_.height, reply_.width, static_cast<int>(reply_.channels), std::exchange(payload_, {})};
}

Image DecodeProcess::decode_image(std::string_view bytes, std::string_view name, const LoadOptions& options) {
  ask_twice(request_of(detail::DecodeTask::picture, options), "", bytes, name);
  return take_image();
}

ImageInfo DecodeProcess::read_image_info(std::string_view bytes, std::string_view name,
                                         const LoadOptions& options) {
  ask_twice(request_of(detail::DecodeTask::info, options), "", bytes, name);
  return {reply_.height, reply_.width, static_cast<int>(reply_.channels)};
}

Image DecodeProcess::decode_scaled(std::string_view bytes, std::string_view name, const PixelBox& box,
                                   std::int64_t min_height, std::int64_t min_width,
                                   const LoadOptions& options) {
  detail::DecodeRequest request = request_of(detail::DecodeTask::box, options);
  request.x = box.x, request.y = box.y;
  request.height = box.height, request.width = box.width;
  request.min_height = min_height, request.min_width = min_width;
  ask_twice(request, "", bytes, name);
  return take_image();
}

}  // namespace tandem
