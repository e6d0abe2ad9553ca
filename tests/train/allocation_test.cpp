// Steps of the CPU engine and predictions do not allocate on the host heap either. This file replaces the
// global operator new of its test program by one that counts; not with sanitizers, which need their own.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

#include "tandem/device/buffer.h"
#include "tandem/nn/mlp.h"
#include "tandem/ops/random.h"
#include "tandem/optim/fused_optimizer.h"
#include "tandem/train/classifier.h"
#include "tandem/train/engines/engine.h"
#include "tests/files/test_files.h"
#include "tests/train/classifier_models.h"

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

namespace {
std::atomic<std::int64_t> allocations{0};
}

// Not inlined: GCC 12 takes a call of free() beside one of operator new for a mistake.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* const memory = std::malloc(bytes > 0 ? bytes : 1)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace tandem {
namespace {

TEST(Allocation, PerceptronStepsOnCpu_AllocateNothing) {
  ImageSet images;
  images.images = random_integers({20000, 28, 28, 1}, 0, 256, {.seed = 1, .dtype = DType::u8});
  images.labels = random_integers({20000}, 0, 10, {.seed = 2, .dtype = DType::i32});
  images.classes.resize(10);
  const auto model = make_mlp({.layers = {784, 16, 10}});
  FusedOptimizer optimizer(model->parameters(), {}, 0.1);
  InMemorySource source(images, {.samples = 20000, .batch_size = 16});
  const auto engine = make_engine({.model = *model, .optimizer = optimizer, .source = source});
  engine->run(0, 0, 1250);
  const auto allocations_of = [&](std::int64_t steps) {
    const std::int64_t before = allocations.load();
    engine->run(1, 0, steps);
    return allocations.load() - before;
  };
  EXPECT_GT(allocations.load(), 0) << "the counting operator new is not in use";
  EXPECT_EQ(allocations_of(1000), allocations_of(10));
}

TEST(Allocation, ClassifierAfterTheFirstCalls_AllocatesNothing) {
  const TempFolder folder;
  for (const std::string model :
       {"mlp", "lenet", "cnn", "resnet18", "mobilenet_v3_small", "efficientnet_b0"}) {
    save_random_model(folder / "m", model);
    const Classifier classifier(folder / "m");
    const Image images[] = {noise_image(61, 47, 3, 1), noise_image(40, 50, 1, 2), noise_image(300, 36, 3, 3)};
    const std::vector<ImageView> views(std::begin(images), std::end(images));
    std::vector<Prediction> answers(3);
    const auto call = [&] {
      for (std::size_t i = 0; i < 3; ++i) classifier.classify({&views[i], 1}, {&answers[i], 1});
      classifier.classify(views, answers);
    };
    const auto count = [&] { return allocations.load() + pool_statistics(cpu_device).system_allocations; };
    std::int64_t fewest = INT64_MAX;  // a thread may get the largest image late
    for (int round = 0; round < 10 && fewest > 0; ++round) {
      const std::int64_t before = count();
      for (int i = 0; i < 5; ++i) call();
      fewest = std::min(fewest, count() - before);
    }
    EXPECT_EQ(fewest, 0) << model;
  }
}

}  // namespace
}  // namespace tandem

#endif
