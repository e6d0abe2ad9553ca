// The protocol of decoder processes, on both sides: requests to a decoder, also impossible ones, and replies
// of a decoder that may say anything. The input is a sequence of requests; each header is also read as a
// reply to the request before.
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "fuzz/fuzz.h"
#include "tandem/process/descriptor.h"
#include "tandem/train/decoders/decode_host.h"
#include "tandem/train/decoders/decode_protocol.h"

namespace tandem {
namespace {

using detail::DecodeReply;
using detail::DecodeRequest;

void check_reply(const DecodeReply& reply, const DecodeRequest& request) {
  if (!is_possible(request) || !is_possible(reply, request)) return;
  if (reply.status != detail::DecodeStatus::done)
    require(reply.bytes <= detail::max_error_bytes);
  else if (request.task == detail::DecodeTask::input)
    require(reply.bytes == static_cast<std::uint64_t>(request.height * request.width * request.channels));
  else if (request.task == detail::DecodeTask::info)
    require(reply.bytes == 0);
  else
    require(reply.bytes <= 3 * static_cast<std::uint64_t>(request.max_pixels) && reply.bytes > 0);
}

// The server tells the truth about lengths, and models have small inputs. All replies to an input fit into
// the buffer of the socket, so that no other thread has to read them.
constexpr int max_requests = 12;

void keep_small(DecodeRequest& request, std::size_t left) {
  request.image_bytes %= left + 1;
  request.max_pixels %= 1 << 12;
  if (!is_possible(request)) return;
  request.transform_bytes %= 129;
  request.height %= 65;
  request.width %= 65;
}

// A process that is no decoder, and one that is told an impossible descriptor.
bool check_commands() {
  char program[] = "tandem", command[] = "decode-images", descriptor[] = "x";
  char* words[] = {program, command, descriptor};
  require(!run_decoder_if_asked(2, words));
  return run_decoder_if_asked(3, words) == 1;
}

std::string as_stream(std::string_view input) {
  std::string stream;
  DecodeRequest request{}, before{};
  for (int count = 0; input.size() >= sizeof request; ++count) {
    if (count == max_requests) return stream;
    DecodeReply reply{};
    std::memcpy(&reply, input.data(), sizeof reply);
    std::memcpy(&request, input.data(), sizeof request);
    input.remove_prefix(sizeof request);
    check_reply(reply, before);
    before = request;
    keep_small(request, input.size());
    const std::size_t bytes =
        std::min<std::size_t>(request.transform_bytes + request.image_bytes, input.size());
    stream.append(reinterpret_cast<const char*>(&request), sizeof request);
    stream.append(input.substr(0, bytes));
    input.remove_prefix(bytes);
  }
  return stream.append(input);
}

}  // namespace
}  // namespace tandem

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tandem;
  static const bool commands_are_checked = check_commands();
  require(commands_are_checked);
  constexpr std::size_t max_size = 1 << 14;
  if (size > max_size) return 0;
  const std::string stream = as_stream(text_of(data, size));
  int fds[2] = {-1, -1};
  require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
  const Descriptor ours(fds[0]), theirs(fds[1]);
  require(::send(ours.get(), stream.data(), stream.size(), MSG_NOSIGNAL) ==
          static_cast<ssize_t>(stream.size()));
  ::shutdown(ours.get(), SHUT_WR);
  answer_decode_requests(theirs.get());
  return 0;
}
