#include "tandem/nn/whitened_cnn.h"

#include <algorithm>
#include <cmath>

#include "tandem/core/parallel.h"
#include "tandem/core/philox.h"
#include "tandem/nn/whitening.h"
#include "tandem/ops/conv/conv2d.h"
#include "tandem/ops/cross_entropy.h"
#include "tandem/tensor/copy.h"
#include "tests/ops/op_test.h"

namespace tandem {
namespace {

using Values = std::vector<double>;

constexpr PixelNorm norm{{0.49f, 0.48f, 0.45f, 0}, {0.25f, 0.24f, 0.26f, 1}};

// Neighboring pixels and channels are similar, as in photographs.
Tensor smooth_images(std::int64_t count, std::int64_t side) {
  std::vector<std::uint8_t> levels;
  for (std::int64_t i = 0; i < count; ++i)
    for (std::int64_t y = 0; y < side; ++y)
      for (std::int64_t x = 0; x < side; ++x)
        for (std::int64_t c = 0; c < 3; ++c) {
          const auto at = static_cast<std::uint64_t>(((i * side + y) * side + x) * 3 + c);
          const double wave = std::sin(0.3 * static_cast<double>(x + i) + 0.2 * static_cast<double>(y * c));
          levels.push_back(static_cast<std::uint8_t>(110 + 80 * wave + random_block(5, 1, at).word[0] % 40));
        }
  return Tensor::from(levels, {count, side, side, 3});
}

// A feature map [channel][y][x] of one image.
struct Map {
  std::int64_t channels, side;
  Values values;

  double at(std::int64_t c, std::int64_t y, std::int64_t x) const {
    if (y < 0 || x < 0 || y >= side || x >= side) return 0;
    return values[static_cast<std::size_t>((c * side + y) * side + x)];
  }
};

Values named(const NamedTensors& state, const std::string& name) {
  for (const NamedTensor& each : state)
    if (each.name == name) return values_of(each.tensor);
  return {};
}

Map convolve(const Map& in, const Values& weight, const Values& bias, std::int64_t kernel,
             std::int64_t padding) {
  const auto filters = std::ssize(weight) / (in.channels * kernel * kernel);
  Map out{filters, in.side + 2 * padding - kernel + 1, {}};
  for (std::int64_t f = 0; f < filters; ++f)
    for (std::int64_t y = 0; y < out.side; ++y)
      for (std::int64_t x = 0; x < out.side; ++x) {
        double sum = bias.empty() ? 0 : bias[static_cast<std::size_t>(f)];
        auto w = weight.begin() + f * in.channels * kernel * kernel;
        for (std::int64_t c = 0; c < in.channels; ++c)
          for (std::int64_t dy = 0; dy < kernel; ++dy)
            for (std::int64_t dx = 0; dx < kernel; ++dx)
              sum += *w++ * in.at(c, y + dy - padding, x + dx - padding);
        out.values.push_back(sum);
      }
  return out;
}

Map pool(const Map& in, std::int64_t kernel) {
  Map out{in.channels, in.side / kernel, {}};
  for (std::int64_t c = 0; c < in.channels; ++c)
    for (std::int64_t y = 0; y < out.side; ++y)
      for (std::int64_t x = 0; x < out.side; ++x) {
        double max = -1e300;
        for (std::int64_t k = 0; k < kernel * kernel; ++k)
          max = std::max(max, in.at(c, kernel * y + k / kernel, kernel * x + k % kernel));
        out.values.push_back(max);
      }
  return out;
}

Map rectify(Map map) {
  for (double& value : map.values) value *= 0.5 * std::erfc(-value / std::sqrt(2.0));
  return map;
}

// With running statistics.
Map normalize(Map map, const NamedTensors& state, const std::string& name) {
  const Values mean = named(state, name + ".running_mean"), variance = named(state, name + ".running_var"),
               bias = named(state, name + ".bias");
  const std::int64_t pixels = map.side * map.side;
  for (std::int64_t i = 0; i < std::ssize(map.values); ++i) {
    const auto c = static_cast<std::size_t>(i / pixels);
    double& value = map.values[static_cast<std::size_t>(i)];
    value = (value - mean[c]) / std::sqrt(variance[c] + 1e-12) + bias[c];
  }
  return map;
}

Values logits_by_hand(const NamedTensors& state, Map map) {
  map = rectify(convolve(map, named(state, "whiten.weight"), named(state, "whiten.bias"), 2, 0));
  for (int i = 1; i <= 6; ++i) {
    const std::string number = std::to_string(i);
    map = convolve(map, named(state, "conv" + number + ".weight"), {}, 3, 1);
    if (i % 2 == 1) map = pool(map, 2);
    map = rectify(normalize(std::move(map), state, "bn" + number));
  }
  map = pool(map, 3);
  const Values weight = named(state, "fc.weight");
  Values logits(weight.size() / map.values.size());
  for (std::size_t i = 0; i < weight.size(); ++i)
    logits[i / map.values.size()] += weight[i] * map.values[i % map.values.size()] / 9;
  return logits;
}

class WhitenedCnnOnDevice : public testing::TestWithParam<Device> {};

TEST_P(WhitenedCnnOnDevice, Logits_AreThoseOfTheDefinition) {
  WhitenedCnn model({.classes = 3, .channels = 2, .widths = {20, 7, 5}, .seed = 3});
  std::uint32_t seed = 0;
  for (const auto& [name, tensor] : model.buffers())  // statistics and biases that are not 0 and 1
    if (is_floating(tensor.dtype()))
      copy_into(tensor.detach(), random_tensor(tensor.shape(), DType::f32, cpu_device, ++seed, 0.2, 1));
  for (const auto& [name, tensor] : model.parameters())
    if (name.ends_with("bias"))
      copy_into(tensor.detach(), random_tensor(tensor.shape(), DType::f32, cpu_device, ++seed, -1, 1));
  model.to(GetParam());
  model.eval();
  for (const std::int64_t side : {25, 32}) {
    const Tensor images = random_tensor({2, side, side, 2}, DType::f32, GetParam(), 7, -1, 1);
    const Values found = values_of(model(images));
    const Values pixels = values_of(images);
    for (std::int64_t i = 0; i < 2; ++i) {
      Map map{2, side, {}};
      for (std::int64_t c = 0; c < 2; ++c)
        for (std::int64_t p = 0; p < side * side; ++p)
          map.values.push_back(pixels[static_cast<std::size_t>((i * side * side + p) * 2 + c)]);
      const Values expected = logits_by_hand(model.state_dict(), map);
      for (std::size_t k = 0; k < 3; ++k)
        EXPECT_NEAR(found[static_cast<std::size_t>(i) * 3 + k], expected[k], 2e-5) << side << ' ' << i;
    }
  }
}

TEST_P(WhitenedCnnOnDevice, FixedTensors_GetNoGradient) {
  WhitenedCnn model({.classes = 4, .widths = {30, 8, 8}});
  model.to(GetParam());
  backward(cross_entropy(model(random_tensor({2, 32, 32, 3}, DType::f32, GetParam(), 1, -1, 1)),
                         Tensor::from(std::vector<std::int64_t>{1, 3}, {2}, GetParam())));
  for (const auto& [name, tensor] : model.parameters()) {
    const bool fixed = name == "whiten.weight" || (name.starts_with("bn") && name.ends_with("weight"));
    EXPECT_EQ(tensor.requires_grad(), !fixed) << name;
    EXPECT_EQ(tensor.grad().defined(), !fixed) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, WhitenedCnnOnDevice, testing::ValuesIn(test_devices()), device_name);

TEST(WhitenedCnn, Defaults_HaveTheSizesOfTheRecipe) {
  const WhitenedCnn model;
  std::int64_t trained = 0;
  for (const auto& [name, tensor] : model.parameters())
    if (tensor.requires_grad()) trained += tensor.numel();
  EXPECT_EQ(trained, 1971352);  // 1.97 million
  EXPECT_EQ(named(model.state_dict(), "fc.bias"), Values());
  // The first 24 filters of the first convolution copy the 24 whitened channels.
  const Values weight = named(model.state_dict(), "conv1.weight");
  for (std::size_t i = 0; i < 24; ++i)
    for (std::size_t k = 0; k < 24 * 9; ++k)
      ASSERT_EQ(weight[i * 24 * 9 + k], k == i * 9 + 4 ? 1 : 0) << i << ' ' << k;
  EXPECT_LE(*std::ranges::max_element(weight.begin() + 24 * 24 * 9, weight.end()), 1 / std::sqrt(216.0));
  EXPECT_EQ(error_text([] { WhitenedCnn({.widths = {1, 2}}); }), "[whitened_cnn] expected 3 widths, got 2");
}

// The outputs of the filters, multiplied pairwise and averaged over all patches: 0 for two different ones,
// and almost 1 for each with itself, unless its eigenvalue is not far above epsilon.
TEST(Whitening, Outputs_AreUncorrelatedAndOfEqualSize) {
  const Tensor images = smooth_images(40, 12);
  const Tensor filters = whitening_filters(images, norm, {2, 2});
  ASSERT_EQ(filters.shape(), (Shape{24, 3, 2, 2}));
  const Values y =
      values_of(conv2d(normalize_images(images, norm), filters.permute({0, 2, 3, 1}).contiguous(), {}));
  const std::size_t rows = y.size() / 24;
  Values eigenvalues;
  for (std::size_t i = 0; i < 24; ++i)
    for (std::size_t j = 0; j <= i; ++j) {
      double product = 0;
      for (std::size_t row = 0; row < rows; ++row) product += y[row * 24 + i] * y[row * 24 + j];
      product /= static_cast<double>(rows);
      if (i == j && i < 12) {
        eigenvalues.push_back(product * 5e-4 / (1 - product));  // product = value / (value + epsilon)
        EXPECT_GT(product, 0.5);
        EXPECT_LT(product, 1);
      } else if (i == j + 12) {
        EXPECT_NEAR(product, -eigenvalues[j] / (eigenvalues[j] + 5e-4), 1e-4) << "the negative of " << j;
      } else if (i < 12) {
        EXPECT_NEAR(product, 0, 1e-4) << i << ' ' << j;
      }
    }
  EXPECT_TRUE(std::ranges::is_sorted(eigenvalues, std::ranges::greater()));
}

TEST(Whitening, Bits_DoNotDependOnThreadsOrTheOrderOfImages) {
  const Tensor images = smooth_images(70, 9);
  const Values expected = values_of(whitening_filters(images, norm, {2, 2}));
  for (const int threads : {1, 2, 5}) {
    const ThreadLimit limit(threads);
    EXPECT_EQ(values_of(whitening_filters(images, norm, {2, 2})), expected) << threads;
  }
  Tensor turned = Tensor::empty(images.shape(), DType::u8);
  for (std::int64_t i = 0; i < 70; ++i) copy_into(turned.slice(0, i, i + 1), images.slice(0, 69 - i, 70 - i));
  EXPECT_EQ(values_of(whitening_filters(turned, norm, {2, 2})), expected);
}

TEST(Whitening, Initialize_SetsTheFiltersAndNothingElse) {
  WhitenedCnn model;
  const Values before = named(model.state_dict(), "conv1.weight");
  model.initialize(smooth_images(20, 32), norm);
  EXPECT_EQ(named(model.state_dict(), "whiten.weight"),
            values_of(whitening_filters(smooth_images(20, 32), norm, {2, 2})));
  EXPECT_EQ(named(model.state_dict(), "conv1.weight"), before);
  EXPECT_EQ(error_text([&] {
              model.initialize(Tensor::empty({2, 8, 8, 1}, DType::u8), norm);
            }),
            "[whitened_cnn] expected images (n, height, width, 3), got [2, 8, 8, 1]");
}

TEST(Whitening, BadImages_AreErrors) {
  EXPECT_EQ(error_text([] {
              whitening_filters(Tensor::empty({2, 8, 8}, DType::u8), norm, {2, 2});
            }),
            "[whitening] expected images of u8 (n, height, width, channels) on the CPU, got [2, 8, 8]");
  EXPECT_EQ(error_text([] {
              whitening_filters(Tensor::empty({2, 1, 8, 3}, DType::u8), norm, {2, 2});
            }),
            "[whitening] expected a kernel no larger than the images, 1x8, got 2x2");
  EXPECT_EQ(error_text([] {
              whitening_filters(Tensor::empty({2, 8, 8, 3}, DType::u8), norm, {2, 2}, 0);
            }),
            "[whitening] expected an epsilon above 0, got 0");
}

}  // namespace
}  // namespace tandem
