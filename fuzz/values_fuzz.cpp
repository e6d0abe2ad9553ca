// Values of flags: numbers, lists of numbers, devices, types, addresses and times.
#include <cmath>
#include <cstdlib>
#include <string>

#include "fuzz/fuzz.h"
#include "tandem/core/dtype.h"
#include "tandem/device/device.h"
#include "tandem/serve/listen_socket.h"
#include "tandem/text/parse_number.h"
#include "tandem/train/stop_time.h"

namespace tandem {
namespace {

void check_numbers(const std::string& text) {
  if (const auto number = parse_number<std::int64_t>(text)) {
    require(*number == std::strtoll(text.c_str(), nullptr, 10));
    require(parse_number<std::int64_t>(text, 10) == number);
    const auto small = parse_number<std::int32_t>(text);
    require(small.has_value() == (*number == static_cast<std::int32_t>(*number)));
    require(parse_number<std::uint64_t>(text).has_value() == !text.starts_with('-'));
  }
  if (const auto number = parse_number<double>(text)) {
    const double expected = std::strtod(text.c_str(), nullptr);
    require(*number == expected || (std::isnan(*number) && std::isnan(expected)));
  }
  const auto numbers = parse_numbers<std::int64_t>(text, ',');
  if (!numbers) return;
  std::string joined;
  for (const std::int64_t number : *numbers) joined += (joined.empty() ? "" : ",") + std::to_string(number);
  require(parse_numbers<std::int64_t>(joined, ',') == numbers && joined.size() <= text.size());
}

void check_names(const std::string& text) {
  if (const auto device = result_or_none([&] { return parse_device_name(text); }))
    require(parse_device_name(device->to_string()) == *device);
  if (const auto dtype = result_or_none([&] { return parse_dtype(text); })) require(name_of(*dtype) == text);
  if (const auto address = result_or_none([&] { return parse_listen_address(text); })) {
    const ListenAddress again = parse_listen_address(address->to_string());
    require(again.host == address->host && again.port == address->port);
    require(again.unix_path == address->unix_path && address->is_unix() == address->host.empty());
    require(address->port >= 0 && address->port <= 65535);
  }
}

void check_time(const std::string& text) {
  const SystemTime now = std::chrono::system_clock::from_time_t(1'790'000'000);
  const auto time = result_or_none([&] { return parse_stop_time(text, now); });
  if (time && (text.starts_with('+') || text.size() <= 5)) require(*time > now);
  if (time) require(!format_time(*time).empty());
  if (const auto stop = job_stop_time({{"SLURM_JOB_END_TIME", text}}, now)) require(*stop > now);
  result_or_none([&] { return check_stop_time(text, now), 0; });
}

}  // namespace
}  // namespace tandem

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tandem;
  const std::string text(text_of(data, size));
  check_numbers(text);
  check_names(text);
  check_time(text);
  return 0;
}
