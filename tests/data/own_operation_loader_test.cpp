// Operations of the user in workers: the same bits for every number and kind, and the isolation of processes.
#include <csignal>

#include "tandem/augment/own_operation.h"
#include "tandem/data/loader/data_loader.h"
#include "tandem/data/loader/loader.h"
#include "tandem/data/loader/make_source.h"
#include "tests/core/error_text.h"
#include "tests/data/loader_cases.h"
#include "tests/data/test_program.h"

namespace tandem {
namespace {

constexpr std::uint8_t deadly[] = {1, 2, 3, 4, 5, 6, 7, 8};  // an image that begins so kills its worker

// Each level is xor-ed with random bits, and moved by the argument.
void scramble(const AugmentCall& call) {
  for (std::int64_t i = 0; i < call.size.bytes(); ++i)
    call.out[i] = static_cast<std::uint8_t>((call.in[i] ^ (call.random[i % 8] >> i % 24)) +
                                            static_cast<int>(call.arguments[0]));
}

void kill_at_deadly(const AugmentCall& call) {
  if (std::equal(std::begin(deadly), std::end(deadly), call.in)) raise(SIGKILL);
  std::copy(call.in, call.in + call.size.bytes(), call.out);
}

Recipe own_recipe() {
  return compose({random_operation("scramble", {0, 200}), random_rotate({-20, 20}),
                  random_operation("scramble", {-9, 9})});
}

TEST(OwnOperationLoader, AnyWorkers_GiveTheSameBits) {
  const ImageSet set = small_set(300);
  const BatchPlan plan{.samples = 300, .batch_size = 16, .seed = 5};
  const auto expected = expected_epoch(set, plan, own_recipe(), 1);
  EXPECT_NE(expected_epoch(set, plan, own_recipe(), 0)[0].pixels, expected[0].pixels);
  for (const WorkerKind kind : {WorkerKind::thread, WorkerKind::process})
    for (const int workers : {0, 1, 2, 5}) {
      Loader loader(detail::sample_store(set), plan, own_recipe(), {.workers = workers, .kind = kind});
      EXPECT_TRUE(load_epoch(loader, set, plan, 1) == expected) << workers;
      EXPECT_EQ(loader.statistics().replaced_workers, 0);
    }
}

TEST(OwnOperationLoader, CrashInProcesses_SkipsTheSampleAfterThreeWorkers) {
  constexpr std::int32_t bad = 41;
  const ImageSet set = small_set(100);
  std::copy(std::begin(deadly), std::end(deadly),
            const_cast<std::uint8_t*>(set.images.data<std::uint8_t>()) + bad * set.image_size());
  const BatchPlan plan{.samples = 100, .batch_size = 10, .seed = 5};
  std::vector<std::string> messages;
  Loader loader(
      detail::sample_store(set), plan, compose({random_operation("kill_at_deadly")}),
      {.workers = 2, .kind = WorkerKind::process, .epochs = 2, .on_message = [&](const std::string& text) {
         messages.push_back(text);
       }});
  for (std::int64_t epoch = 0; epoch < 2; ++epoch)
    for (const Loaded& loaded : load_epoch(loader, set, plan, epoch)) EXPECT_NE(loaded.sample, bad);
  const LoaderStatistics statistics = loader.statistics();
  ASSERT_EQ(statistics.skipped.size(), 1U);
  EXPECT_EQ(statistics.skipped[0].sample, bad);
  EXPECT_GE(statistics.replaced_workers, 3);
  EXPECT_EQ(
      std::count(messages.begin(), messages.end(), "sample 41 crashed 3 workers and is skipped from now on"),
      1);
}

TEST(OwnOperationLoader, OperationThatProcessesLack_IsNamed) {
  register_augmentation({.name = "too_late", .apply = kill_at_deadly});
  const ImageSet set = small_set(20);
  const BatchPlan plan{.samples = 20, .batch_size = 10};
  Loader loader(detail::sample_store(set), plan, compose({random_operation("too_late")}),
                {.workers = 1, .kind = WorkerKind::process});
  EXPECT_EQ(error_text([&] { loader.acquire(0, 0); }),
            "[loader] a worker: [augment] expected the program to call register_augmentation() for "
            "'too_late' before "
            "run_worker_if_asked()");
}

TEST(OwnOperationLoader, DataLoader_UsesIt) {
  const ImageDataset dataset(small_set(20));
  const DataLoader loader(dataset, {.batch_size = 20, .transform = own_recipe(), .shuffle = false});
  const auto batch = loader.epoch(0).begin();
  const Recipe recipe = own_recipe();
  const auto expected =
      expected_epoch(small_set(20), {.samples = 20, .batch_size = 20, .shuffle = false}, recipe, 0);
  EXPECT_EQ(batch->images.data<float>()[0], static_cast<float>(expected[0].pixels[0]) * (1 / 255.0f));
}

// On a GPU the workers apply the whole recipe; no kernel gets it.
TEST(OwnOperationLoader, CudaDevice_GetsTheImagesOfWorkers) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU: " << why_no_cuda();
  const ImageSet set = small_set(300);
  const BatchPlan plan{.samples = 300, .batch_size = 20, .seed = 5};
  const auto source =
      make_source(detail::sample_store(set), plan, own_recipe(), cuda_device(), {.workers = 2});
  EXPECT_EQ(source->description(), "by 2 threads on the CPU, copied to cuda:0");
  const ImageDataset dataset(set);
  const auto first_batch = [&](Device device, int workers) {
    const DataLoader loader(
        dataset, {.batch_size = 20, .transform = own_recipe(), .workers = workers, .device = device});
    return loader.epoch(1).begin()->images.cpu().to_vector<float>();
  };
  for (const int workers : {0, 2})
    EXPECT_EQ(first_batch(cuda_device(), workers), first_batch(cpu_device, 0)) << workers;
  const Tensor images = set.images.to(cuda_device());
  const Tensor samples = Tensor::from(std::vector<std::int32_t>{0, 1}, {2}, cuda_device());
  const Tensor out = Tensor::empty({2, 12, 9, 1}, DType::u8, cuda_device());
  EXPECT_EQ(error_text([&] { augment_batch(own_recipe(), 1, 0, images, samples, out); }),
            "[augment] expected operations that run on cuda:0, got 'scramble 0 200, rotate -20 20, scramble "
            "-9 9': custom ones run on the CPU");
}

}  // namespace

void register_test_operations() {
  register_augmentation({.name = "scramble", .arguments = 1, .apply = scramble});
  register_augmentation({.name = "kill_at_deadly", .apply = kill_at_deadly});
}

}  // namespace tandem
