#include "tandem/data/synthetic/scenes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <set>

#include "tandem/core/parallel.h"
#include "tandem/data/dataset_registry.h"
#include "tandem/data/synthetic/scene_render.h"

namespace tandem {
namespace {

std::vector<std::uint8_t> render(const SceneOptions& options, std::int64_t first, std::int64_t count,
                                 Device device = cpu_device) {
  SceneRenderer renderer(count, options, device);
  renderer.render(first);
  return renderer.images().cpu().to_vector<std::uint8_t>();
}

std::vector<double> only(scenes::Kind kind) {
  std::vector<double> shares(scene_kinds().size());
  shares[static_cast<std::size_t>(kind)] = 1;
  return shares;
}

std::uint64_t fingerprint(const std::vector<std::uint8_t>& bytes) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const std::uint8_t byte : bytes) hash = (hash ^ byte) * 0x100000001b3u;
  return hash;
}

TEST(SceneMath, Functions_AreAccurate) {
  using namespace scenes;
  for (float x = -40; x < 40; x += 0.0371f) {
    EXPECT_NEAR(sine(x), std::sin(x), 1e-5) << x;
    EXPECT_NEAR(cosine(x), std::cos(x), 1e-5) << x;
    EXPECT_NEAR(exponential(x / 2), std::exp(x / 2), 2e-6 * std::exp(x / 2)) << x;
    EXPECT_EQ(floor_of(x), static_cast<int>(std::floor(x))) << x;
    if (x > 0) {
      EXPECT_NEAR(logarithm(x), std::log(x), 2e-6) << x;
      EXPECT_NEAR(power(x, 0.7f), std::pow(x, 0.7f), 1e-5 * std::pow(x, 0.7f)) << x;
    }
    for (float y = -3; y < 3; y += 0.71f)
      EXPECT_NEAR(angle_of(y, x), std::atan2(y, x), 2e-5) << y << " " << x;
  }
  EXPECT_EQ(floor_of(3), 3);
  EXPECT_EQ(floor_of(-3), -3);
  EXPECT_EQ(fraction(-0.25f), 0.75f);
}

// On every machine and compiler.
TEST(Scenes, Pixels_AreThoseOfEveryMachine) {
  EXPECT_EQ(fingerprint(render({.seed = 1, .size = 24}, 0, 64)), 13508175072811287263u);
  EXPECT_EQ(fingerprint(render({.seed = 1, .size = 24, .views = 2}, 0, 64)), 16719766290007966155u);
}

TEST(Scenes, ThreadsAndBatches_DoNotMatter) {
  const SceneOptions options{.seed = 7, .size = 30, .views = 2};
  const std::vector<std::uint8_t> all = render(options, 100, 6);
  set_thread_count(3);
  EXPECT_EQ(render(options, 100, 6), all);
  set_thread_count(usable_cpus());
  const std::size_t picture = 30 * 30 * 3;
  const std::vector<std::uint8_t> one = render(options, 104, 1);
  for (std::size_t view = 0; view < 2; ++view)
    EXPECT_TRUE(std::equal(one.begin() + static_cast<std::ptrdiff_t>(view * picture),
                           one.begin() + static_cast<std::ptrdiff_t>((view + 1) * picture),
                           all.begin() + static_cast<std::ptrdiff_t>((view * 6 + 4) * picture)));
}

TEST(Scenes, SeedsNumbersAndViews_GiveOtherPictures) {
  std::set<std::uint64_t> pictures;
  for (const std::uint64_t seed : {1, 2})
    for (const std::int64_t number : {0, 1, 2, 3}) {
      const auto both = render({.seed = seed, .size = 32, .views = 2}, number, 1);
      const auto middle = both.begin() + static_cast<std::ptrdiff_t>(both.size() / 2);
      pictures.insert(fingerprint({both.begin(), middle}));
      pictures.insert(fingerprint({middle, both.end()}));
    }
  EXPECT_EQ(pictures.size(), 16u);
}

TEST(Scenes, EveryKind_IsRenderedAndKnown) {
  for (int kind = 0; kind < scenes::kind_count; ++kind) {
    SceneRenderer renderer(8, {.seed = 3, .size = 24, .kinds = only(static_cast<scenes::Kind>(kind))});
    renderer.render(0);
    const auto sizes = SceneRenderer::attribute_sizes();
    const auto attributes = renderer.attributes().to_vector<std::int32_t>();
    for (std::size_t i = 0; i < attributes.size(); ++i) {
      EXPECT_GE(attributes[i], 0);
      EXPECT_LT(attributes[i], sizes[i % sizes.size()]);
      if (i % sizes.size() == 0) {
        EXPECT_EQ(attributes[i], kind);
      }
    }
    std::set<std::uint8_t> levels;
    for (const std::uint8_t value : renderer.images().to_vector<std::uint8_t>()) levels.insert(value);
    EXPECT_GT(levels.size(), 30u) << scene_kinds()[static_cast<std::size_t>(kind)];
  }
}

// Parts that cannot reach a tile are left out of it; that must not change a pixel.
TEST(Scenes, PartsOutsideATile_DoNotMatter) {
  using namespace scenes;
  const int size = 56;
  auto scene = std::make_unique<Scene>();
  std::vector<std::uint8_t> all(Scene::max_parts);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint8_t>(i);
  for (std::uint64_t index = 0; index < 60; ++index) {
    sample_scene(*scene, {5, index}, {});
    View view;
    sample_view(view, {5, index}, 0, {});
    const auto picture = render({.seed = 5, .size = size, .views = 1}, static_cast<std::int64_t>(index), 1);
    for (int row = 0; row < size; row += 5)
      for (int column = 0; column < size; column += 3) {
        Color sum = sample_of(*scene, view, column, row, 0, size, scene->parts, all.data());
        for (int s = 1; s < samples_per_pixel; ++s) {
          const Color color = sample_of(*scene, view, column, row, s, size, scene->parts, all.data());
          sum = {sum.r + color.r, sum.g + color.g, sum.b + color.b};
        }
        const Color color = pixel_of(view, sum, column, row);
        EXPECT_EQ(picture[static_cast<std::size_t>((row * size + column) * 3 + 1)], to_byte(color.g))
            << index;
      }
  }
}

TEST(SceneCuda, Pixels_AreThoseOfTheCpu_cuda) {
  if (cuda_device_count() == 0) GTEST_SKIP() << why_no_cuda();
  for (const int views : {0, 2}) {
    const SceneOptions options{.seed = 11, .size = 61, .views = views};
    const auto host = render(options, 40, 150), device = render(options, 40, 150, cuda_device());
    ASSERT_EQ(host.size(), device.size());
    std::size_t different = 0;
    int largest = 0;
    for (std::size_t i = 0; i < host.size(); ++i) {
      different += host[i] != device[i];
      largest = std::max(largest, std::abs(int{host[i]} - int{device[i]}));
    }
    EXPECT_LE(largest, 1) << different << " of " << host.size();
  }
}

TEST(SceneDataset, LabelsAndPictures_AreThoseOfTheRenderer) {
  const SceneDataset data(9, 50, 12, 32);
  SceneRenderer renderer(12, {.seed = 9, .size = 32});
  renderer.render(50);
  const auto pixels = renderer.images().to_vector<std::uint8_t>();
  const auto attributes = renderer.attributes().to_vector<std::int32_t>();
  for (std::int64_t i = 0; i < data.size(); ++i) {
    const Image image = data.image(i);
    EXPECT_TRUE(std::equal(image.pixels.begin(), image.pixels.end(), pixels.begin() + i * 32 * 32 * 3));
    EXPECT_EQ(data.label(i),
              attributes[static_cast<std::size_t>(i) * SceneRenderer::attribute_sizes().size()]);
  }
  EXPECT_EQ(data.describe(3), "scene 53");
  EXPECT_EQ(data.classes().size(), 15u);
  EXPECT_TRUE(datasets().find("scenes") != nullptr);
}

TEST(Scenes, OptionsOutOfRange_Throw) {
  const auto fails = [](std::int64_t count, const SceneOptions& options) {
    EXPECT_THROW(SceneRenderer(count, options), Error);
  };
  fails(0, {});
  fails(1 << 20, {});
  fails(1, {.size = 7});
  fails(1, {.views = 17});
  fails(1, {.min_area = 0});
  fails(1, {.jitter = 2});
  fails(1, {.kinds = {1, 2}});
  fails(1, {.kinds = std::vector<double>(15)});
  EXPECT_THROW(SceneRenderer(1, {}).render(-1), Error);
}

}  // namespace
}  // namespace tandem
