// Compares the 8-bit operations with the definitions in reference.h, fused passes with one operation at a
// time, and batches with single images.
#include "tandem/augment/augment.h"
#include "tandem/augment/transform.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tandem/augment/reference.h"
#include "tandem/core/parallel.h"
#include "tests/augment/augment_case.h"
#include "tests/core/error_text.h"

namespace tandem {
namespace {

constexpr ImageSize sizes[] = {{1, 1, 1},   {1, 9, 1},   {9, 1, 1},    {2, 2, 1},    {7, 5, 3},
                               {28, 28, 1}, {16, 33, 1}, {31, 17, 1},  {20, 20, 4},  {64, 64, 1},
                               {65, 3, 1},  {3, 130, 1}, {256, 40, 1}, {40, 257, 1}, {255, 256, 1}};

FloatImage to_floats(const Levels& levels, const ImageSize& size) {
  FloatImage image{size, {}};
  for (const std::uint8_t level : levels) image.values.push_back(static_cast<float>(level) / 255);
  return image;
}

Levels fixed(const Recipe& recipe, const SampledStep& step, const ImageSize& size, const Levels& image,
             const RandomKey& key = {}) {
  AugmentScratch scratch;
  Levels out(image.size());
  augment_image(recipe, std::span(&step, 1), size, key, image.data(), out.data(), scratch);
  return out;
}

// Whether rounding of the coordinate decides the result: at the border of the image, and halfway between two
// pixels for nearest.
bool depends_on_rounding(const ImageSize& size, double degrees, Interpolation interpolation, int x, int y) {
  const auto [sine, cosine] = detail::sine_cosine(degrees);
  const double cy = (size.height - 1) / 2.0, cx = (size.width - 1) / 2.0, close = 1e-3;
  for (const auto& [c, last] : {std::pair{cosine * (y - cy) + sine * (x - cx) + cy, size.height - 1},
                                std::pair{cosine * (x - cx) - sine * (y - cy) + cx, size.width - 1}}) {
    if (std::abs(c) < close || std::abs(c - last) < close) return true;
    if (interpolation == Interpolation::nearest && std::abs(c - std::floor(c) - 0.5) < close) return true;
  }
  return false;
}

TEST(Augment, Rotation_IsWithinOneLevelOfTheDefinition) {
  std::int64_t compared = 0, pixels = 0;
  for (const Interpolation interpolation :
       {Interpolation::nearest, Interpolation::linear, Interpolation::cubic})
    for (const ImageSize& size : sizes)
      for (const double degrees : {0.0, 7.3, 45.0, 90.0, -61.0, 123.4, 180.0, 244.0, 270.0, 719.0, -2000.5}) {
        const Levels image = random_levels(size, 1);
        const Levels out = fixed(compose({random_rotate({0, 0}, interpolation)}),
                                 detail::fixed_rotate(size, degrees, interpolation), size, image);
        const FloatImage expected = rotate(to_floats(image, size), degrees, interpolation);
        for (int y = 0; y < size.height; ++y)
          for (int x = 0; x < size.width; ++x, ++pixels) {
            if (std::fmod(degrees, 90) != 0 && depends_on_rounding(size, degrees, interpolation, x, y))
              continue;
            ++compared;
            for (int c = 0; c < size.channels; ++c) {
              const std::int64_t i = (std::int64_t{y} * size.width + x) * size.channels + c;
              const double exact = std::clamp(255.0 * expected.values[i], 0.0, 255.0);
              ASSERT_NEAR(out[i], exact, interpolation == Interpolation::nearest ? 1e-3 : 1.0)
                  << size.height << 'x' << size.width << " by " << degrees << " at " << y << ' ' << x;
            }
          }
      }
  EXPECT_GT(compared, pixels * 9 / 10);
}

TEST(Augment, MovesAndNoise_EqualTheirDefinitions) {
  for (const ImageSize& size : sizes) {
    const Levels image = random_levels(size, 2);
    const FloatImage floats = to_floats(image, size);
    const auto expect_near = [&](const Levels& out, const FloatImage& expected, double tolerance) {
      for (std::size_t i = 0; i < out.size(); ++i)
        ASSERT_NEAR(out[i], 255.0 * expected.values[i], tolerance) << i;
    };
    for (const auto& [dx, dy] : {std::pair{0, 0}, {1, -2}, {-3, 4}, {28, 0}, {-27, 27}, {65536, -65536}})
      expect_near(fixed(compose({random_shift({0, 0}, {0, 0})}), detail::fixed_shift(dx, dy), size, image),
                  shift(floats, dx, dy), 1e-3);
    for (const double tilt : {0.0, 0.1, -0.1, 0.5, -0.75, 3.3, -1000.0})
      expect_near(fixed(compose({random_skew({0, 0})}), detail::fixed_skew(tilt), size, image),
                  skew(floats, tilt), 1e-3);
    for (const double amount : {0.0, 0.1, 1.0}) {
      const RandomKey key{.seed = 4, .epoch = 5, .sample = 6};
      expect_near(fixed(compose({random_noise({0, 0})}), detail::fixed_noise(amount), size, image, key),
                  add_noise(floats, amount, key), 1);
    }
  }
}

// Whether a coordinate is so close to a border, or for nearest to a middle between pixels, that its rounding
// decides.
bool is_on_edge(double coordinate, int side, Interpolation interpolation) {
  const double close = 1e-3;
  if (interpolation == Interpolation::nearest) coordinate += 0.5;
  return std::abs(coordinate - std::round(coordinate)) < close || coordinate < close ||
         coordinate > side - 1 - close;
}

TEST(Augment, Zoom_IsWithinOneLevelOfTheDefinition) {
  std::int64_t compared = 0;
  for (const Interpolation interpolation :
       {Interpolation::nearest, Interpolation::linear, Interpolation::cubic})
    for (const ImageSize& size : sizes)
      for (const double factor : {1.0, 1.13, 0.93, 2.0, 0.5, 0.25, 3.7, 100.0}) {
        const Levels image = random_levels(size, 1);
        const Levels out = fixed(compose({random_zoom({1, 1}, interpolation)}),
                                 detail::fixed_zoom(size, factor, interpolation), size, image);
        const FloatImage expected = zoom(to_floats(image, size), factor, interpolation);
        const auto source = [&](int at, int side) {
          return (at - (side - 1) / 2.0) / factor + (side - 1) / 2.0;
        };
        for (int y = 0; y < size.height; ++y)
          for (int x = 0; x < size.width; ++x) {
            if (factor != 1 && (is_on_edge(source(x, size.width), size.width, interpolation) ||
                                is_on_edge(source(y, size.height), size.height, interpolation)))
              continue;
            ++compared;
            for (int c = 0; c < size.channels; ++c) {
              const std::int64_t i = (std::int64_t{y} * size.width + x) * size.channels + c;
              const double exact = std::clamp(255.0 * expected.values[i], 0.0, 255.0);
              ASSERT_NEAR(out[i], exact, interpolation == Interpolation::nearest ? 1e-3 : 1.0)
                  << size.height << 'x' << size.width << " by " << factor << " at " << y << ' ' << x;
            }
          }
      }
  EXPECT_GT(compared, 1000000);
}

TEST(Augment, Crop_IsWithinOneLevelOfTheDefinitionAndInside) {
  for (const ImageSize& size : sizes)
    for (const double fraction : {1.0, 0.99, 0.5, 0.08, 0.01, 1e-6})
      for (const auto& [left, top] : {std::pair{0.0, 0.0}, {1.0, 1.0}, {0.5, 0.3}, {1 - 0x1p-32, 0.7}}) {
        const Levels image = random_levels(size, 1);
        const auto recipe = compose({random_crop({1, 1})});
        const detail::SampledStep step = detail::fixed_crop(size, fraction, left, top);
        const Levels out = fixed(recipe, step, size, image);
        const FloatImage expected = crop(to_floats(image, size), fraction, left, top);
        for (std::size_t i = 0; i < out.size(); ++i)
          ASSERT_NEAR(out[i], 255.0 * expected.values[i], 1.0)
              << size.height << 'x' << size.width << ' ' << i;
        const Levels white(image.size(), 255);
        ASSERT_EQ(fixed(recipe, step, size, white), white) << "nothing outside the image is read";
      }
}

TEST(Augment, FlipAndBlur_EqualTheirDefinitions) {
  for (const ImageSize& size : sizes) {
    const Levels image = random_levels(size, 2);
    const FloatImage floats = to_floats(image, size);
    const Recipe flips = compose({random_flip(1)});
    EXPECT_EQ(fixed(flips, detail::fixed_flip(false), size, image), image);
    const Levels flipped = fixed(flips, detail::fixed_flip(true), size, image);
    const FloatImage expected = flip(floats);
    for (std::size_t i = 0; i < flipped.size(); ++i)
      ASSERT_NEAR(flipped[i], 255.0 * expected.values[i], 1e-3) << i;
    EXPECT_EQ(fixed(flips, detail::fixed_flip(true), size, flipped), image);
    std::vector<BlurKernel> kernels;
    for (const char* name : {"ring", "sobel1", "sobel2", "sobel3", "sobel4", "1 2 1; 2 4 2; 1 2 1", "1000"})
      kernels.push_back(blur_kernel(name));
    for (std::uint32_t i = 0; i < 20; ++i) kernels.push_back(random_kernel(i));
    for (const BlurKernel& kernel : kernels) {
      const Recipe blurs = compose({random_blur(1, kernel)});
      EXPECT_EQ(fixed(blurs, detail::fixed_blur(size, false), size, image), image);
      const Levels blurred = fixed(blurs, detail::fixed_blur(size, true), size, image);
      const FloatImage exact = blur(floats, kernel);
      for (std::size_t i = 0; i < blurred.size(); ++i)
        ASSERT_NEAR(blurred[i], 255.0 * exact.values[i], 0.5 + 1e-3) << to_string(kernel) << " at " << i;
    }
  }
}

TEST(Augment, ReflectedShift_EqualsItsDefinition) {
  for (const ImageSize& size : sizes)
    for (const auto& [dx, dy] : {std::pair{0, 0}, {1, 0}, {-2, 2}, {2, -1}, {27, -28}, {-100, 57}}) {
      const Levels image = random_levels(size, 6);
      const Levels out = fixed(compose({random_reflected_shift({0, 0}, {0, 0})}),
                               detail::fixed_reflected_shift(size, dx, dy), size, image);
      const FloatImage expected = reflected_shift(to_floats(image, size), dx, dy);
      for (std::size_t i = 0; i < out.size(); ++i)
        ASSERT_NEAR(out[i], 255.0 * expected.values[i], 1e-3) << dx << ' ' << dy << " at " << i;
    }
  // numpy.pad([[1, 2, 3, 4]], 2, mode="reflect") is 3 2 1 2 3 4 3 2 in every row.
  const Levels row{1, 2, 3, 4};
  const ImageSize size{.height = 1, .width = 4};
  const Recipe recipe = compose({random_reflected_shift({0, 0}, {0, 0})});
  EXPECT_EQ(fixed(recipe, detail::fixed_reflected_shift(size, -2, 0), size, row), (Levels{3, 2, 1, 2}));
  EXPECT_EQ(fixed(recipe, detail::fixed_reflected_shift(size, 2, 0), size, row), (Levels{3, 4, 3, 2}));
}

TEST(Augment, FusedPasses_EqualOneOperationAtATime) {
  for (const ImageSize& size : sizes)
    for (std::uint32_t i = 0; i < 60; ++i) {
      const Recipe recipe = random_recipe(1000 + i, true);
      const RandomKey key{.seed = 9, .epoch = 1, .sample = i};
      const Levels image = random_levels(size, i);
      ASSERT_EQ(augmented(recipe, size, key, image), one_operation_at_a_time(recipe, size, key, image))
          << to_string(recipe) << " on " << size.height << 'x' << size.width << 'x' << size.channels;
    }
}

TEST(Augment, EmptyRecipeOrEmptyImage_Copies) {
  const ImageSize size{.height = 5, .width = 7, .channels = 3};
  const Levels image = random_levels(size, 3);
  EXPECT_EQ(augmented({}, size, {}, image), image);
  EXPECT_EQ(augmented(all_operations(), {.height = 0, .width = 28}, {}, {}), Levels{});
}

TEST(Augment, Result_DependsOnSeedEpochAndSample) {
  const ImageSize size{.height = 28, .width = 28};
  const Levels image = random_levels(size, 4);
  const Levels first = augmented(all_operations(), size, {.seed = 1, .epoch = 2, .sample = 3}, image);
  EXPECT_EQ(first,
            augmented(all_operations(), size, {.seed = 1, .epoch = 2, .sample = 3, .operation = 4}, image));
  EXPECT_NE(first, augmented(all_operations(), size, {.seed = 2, .epoch = 2, .sample = 3}, image));
  EXPECT_NE(first, augmented(all_operations(), size, {.seed = 1, .epoch = 3, .sample = 3}, image));
  EXPECT_NE(first, augmented(all_operations(), size, {.seed = 1, .epoch = 2, .sample = 4}, image));
}

// A stored hash: every machine, compiler and vector width must give the same bits.
TEST(Augment, Bits_AreTheSameOnEveryMachine) {
  const Recipe recipe = Transform::parse(
                            "shift -1 1, rotate -30 30, shift -2 2, skew -0.2 0.2, noise 0 0.1, rotate -180 "
                            "180 nearest, noise 0 "
                            "0.05")
                            .pixels();
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const ImageSize& size : sizes)
    for (std::uint32_t i = 0; i < 20; ++i)
      for (const std::uint8_t level :
           augmented(recipe, size, {.seed = 12, .epoch = 3, .sample = i}, random_levels(size, i)))
        hash = (hash ^ level) * 0x100000001b3;
  EXPECT_EQ(hash, 8152016364167073993u);
}

TEST(Augment, BitsOfZoomCropFlipAndBlur_AreTheSameOnEveryMachine) {
  const Recipe recipe = Transform::parse(
                            "flip, zoom 0.8 1.25, shift -2 2, blur 0.5 ring, crop 0.5 1, noise 0 0.05, blur "
                            "0.3 sobel4, flip 0.3, zoom 0.25 2 nearest, blur 0.5 1 2; 3 -4, skew -0.1 0.1")
                            .pixels();
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const ImageSize& size : sizes)
    for (std::uint32_t i = 0; i < 20; ++i)
      for (const std::uint8_t level :
           augmented(recipe, size, {.seed = 12, .epoch = 3, .sample = i}, random_levels(size, i)))
        hash = (hash ^ level) * 0x100000001b3;
  EXPECT_EQ(hash, 12154521244673718756u);
}

struct Batch {
  Tensor images, samples, out;
};

Batch make_batch(const ImageSize& size, std::int64_t count, const std::vector<std::int32_t>& samples) {
  const ImageSize all{
      .height = static_cast<int>(count) * size.height, .width = size.width, .channels = size.channels};
  const auto n = static_cast<std::int64_t>(samples.size());
  return {Tensor::from(random_levels(all, 5), {count, size.height, size.width, size.channels}),
          Tensor::from(samples, {n}), Tensor::empty({n, size.height, size.width, size.channels}, DType::u8)};
}

TEST(AugmentBatch, EqualsSingleImages) {
  const Recipe recipe =
      Transform::parse("flip, rotate -12 12, noise 0 0.1, crop 0.5 1, blur 0.5 ring").pixels();
  for (const ImageSize& size : {ImageSize{28, 28, 1}, ImageSize{9, 14, 3}, ImageSize{1, 1, 1}})
    for (const int threads : {1, 3}) {
      const ThreadLimit limit(threads);
      std::vector<std::int32_t> samples(301);
      for (std::size_t i = 0; i < samples.size(); ++i) samples[i] = static_cast<std::int32_t>(i * 37 % 50);
      const Batch batch = make_batch(size, 50, samples);
      augment_batch(recipe, 11, 12, batch.images, batch.samples, batch.out);
      const Levels images = batch.images.to_vector<std::uint8_t>(), out = batch.out.to_vector<std::uint8_t>();
      const std::int64_t bytes = size.bytes();
      for (std::size_t i = 0; i < samples.size(); ++i) {
        const Levels image(images.begin() + samples[i] * bytes, images.begin() + (samples[i] + 1) * bytes);
        const RandomKey key{.seed = 11, .epoch = 12, .sample = static_cast<std::uint32_t>(samples[i])};
        const auto begin = out.begin() + static_cast<std::int64_t>(i) * bytes;
        ASSERT_EQ(Levels(begin, begin + bytes), augmented(recipe, size, key, image)) << i;
      }
    }
}

TEST(AugmentBatch, InvalidTensors_Throw) {
  const Batch valid = make_batch({4, 5, 1}, 3, {0, 2});
  const auto text = [](const Batch& batch, std::int64_t epoch = 0) {
    return error_text(
        [&] { augment_batch(all_operations(), 1, epoch, batch.images, batch.samples, batch.out); });
  };
  augment_batch(all_operations(), 1, 0xffffffff, valid.images, valid.samples, valid.out);
  EXPECT_EQ(text(valid, -1), "[augment] expected an epoch from 0 to 4294967295, got -1");
  EXPECT_EQ(text(valid, std::int64_t{1} << 32),
            "[augment] expected an epoch from 0 to 4294967295, got 4294967296");
  EXPECT_EQ(text(make_batch({4, 5, 1}, 3, {0, 3})),
            "[augment] expected samples from 0 to below 3, got 3 at position 1");
  EXPECT_EQ(text(make_batch({4, 5, 1}, 3, {-1})),
            "[augment] expected samples from 0 to below 3, got -1 at position 0");
  const std::string images =
      "[augment] expected contiguous images of u8 in shape (count, height, width, channels)";
  Batch bad = valid;
  bad.images = valid.images.reshape({3, 20, 1});
  EXPECT_EQ(text(bad).find(images), 0u) << text(bad);
  bad.images = Tensor::empty({3, 4, 5, 1}, DType::f32);
  EXPECT_EQ(text(bad).find(images), 0u) << text(bad);
  bad.images = Tensor::empty({3, 5, 4, 1}, DType::u8).transpose(1, 2);
  EXPECT_EQ(text(bad).find(images), 0u) << text(bad);
  bad = valid;
  bad.samples = Tensor::empty({2}, DType::i64);
  EXPECT_EQ(text(bad), "[augment] expected samples of i32 in shape (count), got [2] of i64");
  bad = valid;
  bad.out = Tensor::empty({1, 4, 5, 1}, DType::u8);
  EXPECT_EQ(text(bad), "[augment] expected an output of shape [2, 4, 5, 1], got [1, 4, 5, 1]");
  bad.out = Tensor::empty({2, 5, 4, 1}, DType::u8);
  EXPECT_EQ(text(bad), "[augment] expected an output of shape [2, 4, 5, 1], got [2, 5, 4, 1]");
  bad.out = valid.images.slice(0, 0, 2);
  EXPECT_EQ(text(bad), "[augment] expected an output that does not overlap the images");
  EXPECT_EQ(text(make_batch({1, 65537, 1}, 1, {0})),
            "[augment] expected height, width and channels of at most 65536, got [1, 1, 65537, 1]");
}

TEST(AugmentBatch, NoSamples_DoesNothing) {
  const Batch batch = make_batch({4, 5, 1}, 3, {});
  augment_batch(all_operations(), 1, 0, batch.images, batch.samples, batch.out);
}

}  // namespace
}  // namespace tandem
