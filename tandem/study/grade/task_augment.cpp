// The tasks of augmentation: shift, skew and noise on one image, and the number of workers.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "tandem/core/check.h"
#include "tandem/ops/random.h"
#include "tandem/study/grade/task_cases.h"
#include "tandem/text/parse_number.h"

namespace tandem {
namespace {

struct ImageCase {
  std::int64_t height = 0, width = 0;
};

ImageCase parse_image(const char* task, const char* type, const std::string& text) {
  const std::string ending = std::string(" ") + type;
  const std::string size = text.ends_with(ending) ? text.substr(0, text.size() - ending.size()) : "";
  const auto numbers = parse_numbers<std::int64_t>(size, 'x');
  check(numbers && numbers->size() == 2 && std::ranges::min(*numbers) >= 1 &&
            std::ranges::max(*numbers) <= 16384,
        "[task {}] expected a case such as \"28x28 {}\", got \"{}\"", task, type, text);
  return {numbers->front(), numbers->back()};
}

// out[y][x] = in[from(y, x)], 0 outside.
template <class From>
Tensor move_pixels(const Tensor& image, From&& from) {
  const std::int64_t height = image.size(0), width = image.size(1);
  std::vector<std::uint8_t> out(static_cast<std::size_t>(height * width), 0);
  const std::uint8_t* const in = image.data<std::uint8_t>();
  for (std::int64_t y = 0; y < height; ++y)
    for (std::int64_t x = 0; x < width; ++x) {
      const auto [from_y, from_x] = from(y, x);
      if (from_y >= 0 && from_y < height && from_x >= 0 && from_x < width)
        out[static_cast<std::size_t>(y * width + x)] = in[from_y * width + from_x];
    }
  return Tensor::from(out, {height, width});
}

// No pixel is 0, so that it can be told from what comes in.
Tensor sample_image(const ImageCase& size, std::uint64_t seed) {
  return random_integers({size.height, size.width}, 1, 256, {.seed = seed, .dtype = DType::u8});
}

std::string noise_problem(const std::vector<float>& image, const std::vector<float>& out, double amount) {
  constexpr double rounding = 1e-6;
  std::vector<double> inner;  // noise of pixels that cannot have been clipped
  for (std::size_t i = 0; i < image.size(); ++i) {
    const double in = image[i], got = out[i], noise = got - in;
    if (!(got >= 0 && got <= 1)) return fmt::format("a pixel is {}, expected 0 to 1: it is not clipped", got);
    if (std::abs(noise) > amount + rounding)
      return fmt::format("the noise of a pixel is {:.4f}, expected at most {:.4f}", noise, amount);
    if (in >= amount && in <= 1 - amount) inner.push_back(noise);
  }
  const double count = static_cast<double>(inner.size());
  if (inner.size() < 50) return {};
  const double error = 6 / std::sqrt(count), variance = amount * amount / 3;
  double mean = 0, square = 0, next = 0;
  for (const double noise : inner) {
    mean += noise / count;
    square += noise * noise / count;
  }
  for (std::size_t i = 1; i < inner.size(); ++i) next += inner[i] * inner[i - 1] / count;
  if (std::abs(mean) > error * std::sqrt(variance))
    return fmt::format("the mean of the noise is {:.4f}, expected about 0", mean);
  if (std::abs(square - variance) > error * variance)
    return fmt::format("the variance of the noise is {:.3g}, expected about {:.3g}", square, variance);
  if (std::abs(next) > error * variance) return "neighboring pixels do not have their own noise";
  return {};
}

}  // namespace

TaskCase make_shift_case(const std::string& name) {
  const ImageCase size = parse_image("shift", "u8", name);
  const ArrayFormat image = array_format(DType::u8, size.height, size.width);
  TaskCase made{.name = name,
                .format = {.function = "shift",
                           .inputs = {image, scalar_format(DType::i64), scalar_format(DType::i64)},
                           .outputs = {image}}};
  made.inputs = [size](std::uint64_t seed) {
    const auto some = [&](std::uint64_t stream, std::int64_t side) {  // sometimes more than the image has
      const std::int64_t sign = sample_integer(seed, stream + 10, 0, 1) * 2 - 1;
      return i64_scalar(sign * sample_integer(seed, stream, 1,
                                              sample_integer(seed, stream + 20, 0, 3)
                                                  ? std::max<std::int64_t>(side / 3, 1)
                                                  : side + 2));
    };
    return std::vector{sample_image(size, seed), some(1, size.width), some(2, size.height)};
  };
  made.expected = [](std::span<const Tensor> in) {
    const auto dx = in[1].item<std::int64_t>(), dy = in[2].item<std::int64_t>();
    return std::vector{
        move_pixels(in[0], [=](std::int64_t y, std::int64_t x) { return std::pair(y + dy, x + dx); })};
  };
  return made;
}

TaskCase make_skew_case(const std::string& name) {
  const ImageCase size = parse_image("skew", "u8", name);
  const ArrayFormat image = array_format(DType::u8, size.height, size.width);
  TaskCase made{
      .name = name,
      .format = {.function = "skew", .inputs = {image, scalar_format(DType::f64)}, .outputs = {image}}};
  made.inputs = [size](std::uint64_t seed) {  // eighths: y · tilt is exact, also in f32
    std::int64_t eighths = sample_integer(seed, 1, 1, 12);
    if (sample_integer(seed, 2, 0, 2) > 0) eighths = -eighths;  // rounding down matters below 0
    return std::vector{sample_image(size, seed), f64_scalar(static_cast<double>(eighths) / 8)};
  };
  made.expected = [](std::span<const Tensor> in) {
    const double tilt = in[1].item<double>();
    return std::vector{move_pixels(in[0], [=](std::int64_t y, std::int64_t x) {
      return std::pair(y, x + static_cast<std::int64_t>(std::floor(static_cast<double>(y) * tilt)));
    })};
  };
  return made;
}

TaskCase make_noise_case(const std::string& name) {
  const ImageCase size = parse_image("noise", "f32", name);
  const ArrayFormat image = array_format(DType::f32, size.height, size.width);
  TaskCase made{.name = name,
                .format = {.function = "noise",
                           .inputs = {image, scalar_format(DType::f64), scalar_format(DType::i64)},
                           .outputs = {image}}};
  made.inputs = [size](std::uint64_t seed) {
    return std::vector{uniform({size.height, size.width}, 0, 1, {.seed = seed}),
                       f64_scalar(static_cast<double>(sample_integer(seed, 1, 5, 40)) / 100),
                       i64_scalar(sample_integer(seed, 2, 1, 1 << 30))};
  };
  made.check = [last = std::make_shared<std::vector<double>>()](std::span<const Tensor> in,
                                                                std::span<const Tensor> outputs) {
    const std::vector<float> image_values = in[0].to_vector<float>(), out = outputs[0].to_vector<float>();
    const double amount = in[1].item<double>();
    std::string problem = noise_problem(image_values, out, amount);
    // The noise in units of its amplitude must be another one for another seed.
    std::vector<double> noise;
    for (std::size_t i = 0; i < out.size(); ++i)
      noise.push_back(out[i] > 0 && out[i] < 1 ? (out[i] - image_values[i]) / amount : std::nan(""));
    std::size_t equal = 0, compared = 0;
    for (std::size_t i = 0; i < last->size(); ++i) {
      const double difference = std::abs(noise[i] - (*last)[i]);
      compared += std::isnan(difference) ? 0 : 1;
      equal += difference < 1e-4 ? 1 : 0;
    }
    if (problem.empty() && compared > 20 && equal > compared / 2)
      problem = "the noise is that of another seed";
    *last = std::move(noise);
    return problem;
  };
  return made;
}

TaskCase make_workers_case(const std::string& name) {
  const bool requested = name == "requested", slurm = name == "slurm";
  check(requested || slurm || name == "cpus",
        "[task workers] expected one of the cases requested, slurm, cpus, got \"{}\"", name);
  const ArrayFormat scalar = scalar_format(DType::i64);
  TaskCase made{.name = name,
                .format = {.function = "workers", .inputs = {scalar, scalar, scalar}, .outputs = {scalar}}};
  made.inputs = [requested, slurm](std::uint64_t seed) {  // 0: not given, not set
    const std::int64_t cpus = sample_integer(seed, 2, 0, 1) ? sample_integer(seed, 3, 1, 128) : 1;
    return std::vector{i64_scalar(requested ? sample_integer(seed, 0, 2, 64) : 0),
                       i64_scalar(requested || slurm ? sample_integer(seed, 1, 2, 64) : 0), i64_scalar(cpus)};
  };
  made.expected = [](std::span<const Tensor> in) {
    std::int64_t count = 0;
    for (const Tensor& one : in)
      if (count == 0) count = one.item<std::int64_t>();
    return std::vector{i64_scalar(std::max<std::int64_t>(count, 2))};
  };
  return made;
}

}  // namespace tandem
