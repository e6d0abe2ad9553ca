// The task of the queue: many writers, one reader, between processes; a writer may be killed.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "tandem/core/check.h"
#include "tandem/ops/random.h"
#include "tandem/study/grade/task_cases.h"
#include "tandem/text/parse_number.h"

namespace tandem {
namespace {

constexpr std::int64_t messages_per_writer = 25,
                       max_message_bytes = 9000;  // more than a pipe writes atomically

struct QueueCase {
  std::int64_t writers = 0;
  bool with_kill = false;
};

QueueCase parse_queue(const std::string& text) {
  constexpr std::string_view killed = ", one killed", word = " writers";
  std::string_view rest = text;
  const bool with_kill = rest.ends_with(killed);
  if (with_kill) rest.remove_suffix(killed.size());
  const bool is_one = rest == "1 writer";
  const bool has_word = is_one || rest.ends_with(word);
  if (has_word) rest.remove_suffix(is_one ? word.size() - 1 : word.size());
  const auto writers = has_word ? parse_number<std::int64_t>(rest) : std::nullopt;
  check(writers && *writers >= 1 && *writers <= 64,
        "[task queue] expected a case such as \"8 writers\" or \"8 writers, one killed\", got \"{}\"", text);
  return {*writers, with_kill};
}

std::string message_at(const Tensor& messages, std::int64_t row, std::int64_t size) {
  const auto* const first =
      reinterpret_cast<const char*>(messages.data<std::uint8_t>() + row * messages.size(1));
  return {first, static_cast<std::size_t>(std::clamp<std::int64_t>(size, 0, messages.size(1)))};
}

// Each message arrives once and whole, and those of a writer in their order.
std::string queue_problem(std::span<const Tensor> in, std::span<const Tensor> out, std::int64_t writers) {
  const std::int64_t count = in[0].size(0);
  std::map<std::string, std::int64_t> sent;
  for (std::int64_t i = 0; i < count; ++i) sent[message_at(in[0], i, in[1].data<std::int64_t>()[i])] = i;
  std::vector<std::int64_t> last(static_cast<std::size_t>(writers), -1);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t size = out[1].data<std::int64_t>()[i];
    const auto found = sent.find(message_at(out[0], i, size));
    if (found == sent.end() || size > max_message_bytes)
      return fmt::format(
          "message {} of {} that arrived, of {} bytes, is none that was put: torn, mixed, or there twice",
          i + 1, count, size);
    const std::int64_t writer = found->second % writers;
    std::int64_t& before = last[static_cast<std::size_t>(writer)];
    if (found->second < before) return fmt::format("the messages of writer {} are out of order", writer);
    before = found->second;
    sent.erase(found);
  }
  return {};
}

}  // namespace

TaskCase make_queue_case(const std::string& name) {
  const QueueCase parsed = parse_queue(name);
  const std::int64_t count = parsed.writers * messages_per_writer;
  const ArrayFormat messages = array_format(DType::u8, count, max_message_bytes);
  const ArrayFormat sizes = array_format(DType::i64, count, 1);
  TaskCase made{.name = name,
                .format = {.function = "queue",
                           .inputs = {messages, sizes, scalar_format(DType::i64), scalar_format(DType::i64)},
                           .outputs = {messages, sizes}}};
  made.inputs = [parsed, count](std::uint64_t seed) {
    std::vector<std::int64_t> bytes;
    for (std::int64_t i = 0; i < count; ++i) {
      const auto stream = static_cast<std::uint64_t>(i) + 1;
      const bool is_long = sample_integer(seed, 2 * stream, 0, 3) == 0;
      bytes.push_back(sample_integer(seed, 2 * stream + 1, 16, is_long ? max_message_bytes : 200));
    }
    return std::vector{
        random_integers({count, max_message_bytes}, 0, 256, {.seed = seed, .dtype = DType::u8}),
        Tensor::from(bytes, {count, 1}), i64_scalar(parsed.writers), i64_scalar(parsed.with_kill ? 1 : 0)};
  };
  made.check = [writers = parsed.writers](std::span<const Tensor> in, std::span<const Tensor> out) {
    return queue_problem(in, out, writers);
  };
  return made;
}

}  // namespace tandem
