// What ranks say when something is wrong, and that nothing is lost. Ranks are threads of the test here;
// tests/apps starts processes.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <new>

#include "tandem/core/check.h"
#include "tandem/ops/arithmetic.h"
#include "tandem/ops/fill.h"
#include "tandem/tensor/copy.h"
#include "tandem/train/failed_rank.h"
#include "tandem/train/rank_data.h"
#include "tandem/train/ranks.h"
#include "tandem/train/trainer.h"
#include "tandem/train/training_state.h"
#include "tests/dist/rank_threads.h"
#include "tests/train/small_run.h"

namespace tandem {
namespace {

constexpr pid_t no_process = 1 << 30;  // higher than any process number

// Ranks of one host, whose processes have ended or not.
class SomeRanks final : public Group {
 public:
  SomeRanks(int rank, const std::vector<pid_t>& processes) : Group(rank) {
    const int size = static_cast<int>(processes.size());
    for (int i = 0; i < size; ++i)
      all.push_back({.rank = i, .size = size, .host = "n1", .pid = processes[static_cast<std::size_t>(i)]});
  }
  const std::vector<Place>& places() const override { return all; }
  Work reduce(const Partials&, const Tensor&) override { return {}; }
  void all_gather(std::span<const std::byte>, std::span<std::byte>) override {}
  void broadcast(std::span<std::byte>, int) override {}
  void fail(std::string_view why) noexcept override { failure = why; }
  void throw_if_failed() override { check(failure.empty(), "{}", failure); }

  std::vector<Place> all;
  std::string failure;
};

constexpr double soon = 0.02;

TEST(FailedRank, OwnError_IsSaidByRankZero) {
  SomeRanks first(0, {getpid(), getpid()});
  EXPECT_EQ(end_with_error(first, Error("no photo"), soon), "no photo");
  EXPECT_EQ(first.failure, "no photo");
  SomeRanks second(1, {no_process, getpid()});
  EXPECT_EQ(end_with_error(second, Error("no photo"), soon), "");  // rank 0 was told, and has ended
  EXPECT_EQ(second.failure, "no photo");
}

TEST(FailedRank, OwnError_IsSaidByTheRankIfRankZeroDoesNotEnd) {
  SomeRanks group(1, {getpid(), getpid(), getpid()});
  EXPECT_EQ(end_with_error(group, std::bad_alloc(), soon), "rank 1 on n1: out of memory");
  SomeRanks told(2, {getpid(), getpid(), getpid()});
  told.failure = "rank 1 on n1: no photo";
  EXPECT_EQ(end_with_error(told, Error(told.failure), soon), "");  // that is for rank 1
}

TEST(FailedRank, RankZeroOfSeveralHosts_NamesItself) {
  SomeRanks group(0, {getpid(), getpid()});
  group.all[1].host = "n2";
  EXPECT_EQ(end_with_error(group, Error("disk full"), soon), "rank 0 on n1: disk full");
}

TEST(FailedRank, LostRank_IsNamedByAnotherOne) {
  const LostRank zero("rank 0 (host n1, process 7) has ended"), two("rank 2 (host n1, process 9) has ended");
  const auto said_by = [](int rank, const LostRank& lost, const std::vector<pid_t>& processes) {
    SomeRanks group(rank, processes);
    return end_with_error(group, lost, soon);
  };
  const std::vector<pid_t> all(3, getpid()), without_first{no_process, getpid(), getpid()};
  EXPECT_EQ(said_by(0, two, all), two.what());
  EXPECT_EQ(said_by(1, two, without_first), "");  // rank 0 has said it
  EXPECT_EQ(said_by(1, two, all), two.what());    // rank 0 does not end
  EXPECT_EQ(said_by(1, zero, without_first), zero.what());
  EXPECT_EQ(said_by(2, zero, {no_process, no_process, getpid()}), "");
}

TEST(FailedRank, WithoutAGroup_OneRankOfANodeSpeaks) {
  const auto said = [](int rank, int local_rank) {
    return end_with_error(
        {.launcher = Launcher::slurm,
         .place = {.rank = rank, .size = 4, .local_rank = local_rank, .local_size = 2, .host = "n2"}},
        "no plugin", soon);
  };
  EXPECT_EQ(said(0, 0), "no plugin");
  EXPECT_EQ(said(1, 1), "");
  EXPECT_EQ(said(2, 0), "rank 2 on n2: no plugin");
}

void expect_told_by_first(const std::vector<std::string>& errors, const std::string& text) {
  EXPECT_EQ(errors[0], text);
  for (std::size_t rank = 1; rank < errors.size(); ++rank) EXPECT_EQ(errors[rank], "rank 0 on n0: " + text);
}

// In nobody's name: it comes from no single rank.
TEST(FailedRank, ErrorOfAllRanks_IsSaidByRankZeroAlone) {
  for (int i = 0; i < 20; ++i) {
    std::vector<std::string> said(3);
    const auto errors = on_ranks(3, over_shared_memory(), [&](Group& group) {
      try {
        check_ranks_agree(group, {{"options", group.place().rank == 1 ? "b" : "a"}});
      } catch (const Error& error) {
        said[static_cast<std::size_t>(group.place().rank)] = end_with_error(group, error, 0);
        throw;
      }
    });
    const std::string text = "[group] ranks 0 (host n0) and 1 (host n0) differ in options: a and b";
    expect_told_by_first(errors, text);
    EXPECT_EQ(said, (std::vector<std::string>{text, "", ""}));
  }
}

DataList some_list() {
  return {.classes = {"cat", "dog"},
          .training = {{0, "a.jpg"}, {1, "b.jpg"}},
          .validation = {},
          .unreadable = {},
          .training_count = 2,
          .validation_count = 0,
          .labels_digest = "12"};
}

TEST(RankData, DifferentData_IsNamed) {
  const auto check_on_ranks = [](const std::function<void(DataList&, NamedTexts&)>& change) {
    return on_ranks(3, over_messages(), [&](Group& group) {
      DataList list = some_list();
      NamedTexts fingerprints{{"the test images", "aa"}};
      if (group.place().rank == 2) change(list, fingerprints);
      check_same_data(group, list, fingerprints);
    });
  };
  for (const std::string& error : check_on_ranks([](DataList&, NamedTexts&) {})) EXPECT_EQ(error, "");
  const std::string ranks = "ranks 0 (host n0) and 2 (host n1) ";
  expect_told_by_first(check_on_ranks([](DataList& list, NamedTexts&) {
                         list.training.pop_back();
                         list.training_count = 1;
                       }),
                       "[train] " + ranks + "have different data; on rank 2: photograph b.jpg is missing");
  expect_told_by_first(
      check_on_ranks([](DataList&, NamedTexts& fingerprints) { fingerprints[0].second = "bb"; }),
      "[group] " + ranks + "differ in the test images: aa and bb");
}

TEST(RankData, Fingerprints_FollowThePixels) {
  const TempFolder folder;
  write_small_digits(folder.path());
  TrainOptions options;
  options.data = folder.path().string();
  TrainingData data = load_training_data(options, {});
  const NamedTexts before = image_fingerprints(data);
  EXPECT_EQ(image_fingerprints(load_training_data(options, {})), before);
  data.test.images = data.test.images.clone();
  data.test.images.data<std::uint8_t>()[5] ^= 1;
  const NamedTexts changed = image_fingerprints(data);
  EXPECT_EQ(changed[0], before[0]);
  EXPECT_NE(changed[2], before[2]);
}

class RankErrors : public testing::Test {
 protected:
  RankErrors() {
    write_small_digits(data_.path());
    options_.data = data_.path().string();
    options_.layers = {784, 24, 10};
    options_.device = cpu_device;
    options_.workers = 0;
    options_.shards = 3;
    options_.epochs = 3;
    options_.run_folder = runs_ / "run";
  }

  // Each rank trains with its own callbacks; the others are told of its error. Returns the errors.
  std::vector<std::string> train_on_ranks(const std::function<FitCallbacks(Group&)>& callbacks) {
    return on_ranks(3, over_shared_memory(), [&](Group& group) {
      try {
        train(options_, group, callbacks(group));
      } catch (const Error& error) {
        end_with_error(group, error, 0);
        throw;
      }
    });
  }

  TempFolder data_, runs_;
  TrainOptions options_;
};

// A launcher that sees a rank end with a status may kill the others.
TEST_F(RankErrors, StoppedRank_EndsWhenTheCheckpointIsWritten) {
  for (int i = 0; i < 5; ++i) {
    options_.run_folder = runs_ / std::to_string(i);
    const auto errors = on_ranks(3, over_shared_memory(), [&](Group& group) {
      int polls = 0;
      train(options_, group, {.stop_signal = [&] { return ++polls > 1 ? SIGTERM : 0; }});
      EXPECT_TRUE(std::filesystem::exists(RunFolder{options_.run_folder}.checkpoint()));
    });
    for (const std::string& error : errors) EXPECT_EQ(error, "");
  }
}

TEST_F(RankErrors, ExceptionOnOneRank_ReachesAll) {
  const auto errors = train_on_ranks([](Group& group) -> FitCallbacks {
    if (group.place().rank != 1) return {};
    return {.stop_signal = []() -> int { throw Error("cannot read 7.jpg"); }};
  });
  EXPECT_EQ(errors[1], "cannot read 7.jpg");
  for (const std::size_t rank : {0u, 2u}) EXPECT_EQ(errors[rank], "rank 1 on n0: cannot read 7.jpg");
}

// The next step of all ranks has a loss that is not finite: the rank where it began is named.
TEST_F(RankErrors, LossNotFiniteOnOneRank_NamesItAndItsHost) {
  options_.batch_size = 30;
  const auto errors = on_ranks(3, over_shared_memory(), [&](Group& group) {
    TrainOptions options = options_;
    options.loss_function = [&, calls = 0](const Tensor& outputs, const Tensor& labels) mutable {
      const Tensor loss = compute_loss(LossKind::cross_entropy, outputs, labels);
      const bool is_wrong = group.place().rank == 2 && ++calls > 12;  // two calls per step
      return is_wrong ? multiply(loss, std::nan("")) : loss;
    };
    try {
      train(options, group);
    } catch (const Error& error) {
      end_with_error(group, error, 0);
      throw;
    }
  });
  const std::string text = "[train] the loss is not finite ";
  EXPECT_EQ(errors[0].substr(0, text.size()), text);
  EXPECT_NE(errors[0].find(" of epoch 1, first on rank 2 (host n1): try a lower learning rate ("),
            std::string::npos)
      << errors[0];
  expect_told_by_first(errors, errors[0]);
}

// What the ranks say after six steps. Rank 1 has another learning rate, or its model is changed.
std::vector<std::string> first_not_finite(TrainOptions options, double rate_of_one,
                                          const std::function<void(Module&)>& change_of_one = {}) {
  options.batch_size = 10;
  options.shards = 3;
  options.workers = 0;
  const TrainingImages images = make_digits(60, 3);
  std::vector<std::string> found(3);
  const auto errors = on_ranks(3, over_shared_memory(), [&](Group& group) {
    TrainOptions own = options;
    const std::unique_ptr<Module> model = new_model(own, images);
    if (group.place().rank == 1) own.learning_rate = rate_of_one;
    if (group.place().rank == 1 && change_of_one) change_of_one(*model);
    TrainingState state(*model, own, images, input_of(own, images), cpu_device, {}, nullptr, &group);
    state.engine().run(0, 0, 6);
    found[static_cast<std::size_t>(group.place().rank)] =
        describe_first(group, state.engine().first_not_finite());
  });
  for (const std::string& error : errors) EXPECT_EQ(error, "");
  return found;
}

TEST(FirstNotFinite, Perceptron_FollowsTheLoss) {
  for (const std::string& text : first_not_finite({.layers = {784, 10}}, 3e38))
    EXPECT_EQ(text, ", first on rank 1 (host n0)");
}

// They give what is not finite on one rank to the others within the step.
TEST(FirstNotFinite, BatchNorms_AreFollowed) {
  const auto break_weights = [](Module& model) {
    for (const auto& [name, tensor] : model.parameters())
      if (tensor.rank() > 1) copy_into(tensor.detach(), full(tensor.shape(), std::nan("")));
  };
  for (const std::string& text : first_not_finite({.model = "cnn"}, 0.1, break_weights))
    EXPECT_EQ(text, ", first on rank 1 (host n0)");
}

TEST(FirstNotFinite, Ranks_AreNamedOrCounted) {
  const auto first = [](const std::vector<std::int64_t>& numbers) {
    std::string text;
    on_ranks(static_cast<int>(numbers.size()), over_messages(), [&](Group& group) {
      const std::string mine = describe_first(group, numbers[static_cast<std::size_t>(group.place().rank)]);
      if (group.place().rank == 0) text = mine;
    });
    return text;
  };
  EXPECT_EQ(first({7}), "");
  EXPECT_EQ(first({7, 7, 7}), ", on all ranks");
  EXPECT_EQ(first({7, 9, 5, 8}), ", first on rank 2 (host n1)");
  EXPECT_EQ(first({9, 7, 9, 7}), ", first on rank 1 (host n0) and 1 more");
}

// The checkpoint of before stays whole.
TEST_F(RankErrors, FullDisk_ReachesAll) {
  const RunFolder folder{options_.run_folder};
  options_.save_every_seconds = 0;
  const auto errors = train_on_ranks([&](Group&) -> FitCallbacks {
    return {.on_epoch = [&](const EpochRecord& record) {
      if (record.epoch != 1) return;
      std::filesystem::remove(folder.log());
      std::filesystem::create_symlink("/dev/full", folder.log());
    }};
  });
  const std::string text = "[train] cannot write " + folder.log().string() + ": No space left on device";
  EXPECT_EQ(errors[0], text);
  for (const std::size_t rank : {1u, 2u}) EXPECT_EQ(errors[rank], "rank 0 on n0: " + text);
  EXPECT_FALSE(weights_of(read_checkpoint(folder.checkpoint())).empty());
}

}  // namespace
}  // namespace tandem
