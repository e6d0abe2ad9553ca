// Groups of threads: sums bit for bit, small operations, agreement, and what happens when ranks differ.
#include "tandem/dist/group.h"

#include <cmath>
#include <numeric>

#include "tests/core/error_text.h"
#include "tests/dist/rank_threads.h"
#include "tests/dist/shard_sums.h"
#include "tests/dist/slow_transport.h"

namespace tandem {
namespace {

using Errors = std::vector<std::string>;

MakeGroup over_slow_messages(const SlowOptions& slow, const GroupOptions& options = {}) {
  return [=](const Place& place, const std::shared_ptr<LocalSegment>& segment) {
    return transport_group(
        place, [&] { return SlowTransport::open(LocalTransport::open(segment, place.rank), slow); }, options);
  };
}

struct NamedGroup {
  const char* name;
  MakeGroup make;

  friend std::ostream& operator<<(std::ostream& out, const NamedGroup& group) { return out << group.name; }
};

class AllGroups : public testing::TestWithParam<NamedGroup> {
 protected:
  static void expect_no_errors(const Errors& errors) { EXPECT_EQ(errors, Errors(errors.size())); }
  void on(int ranks, const RankBody& body) const { expect_no_errors(on_ranks(ranks, GetParam().make, body)); }
};

INSTANTIATE_TEST_SUITE_P(Group, AllGroups,
                         testing::Values(NamedGroup{"SharedMemory", over_shared_memory()},
                                         NamedGroup{"Messages", over_messages()},
                                         NamedGroup{"SlowMessages", over_slow_messages({.seed = 3})},
                                         NamedGroup{"SlowMessagesOfOneThread",
                                                    over_slow_messages({.seed = 4, .any_thread = false})}),
                         [](const auto& test) { return test.param.name; });

Partials partials(std::int64_t shards, const Group& group, std::int64_t size) {
  Partials mine{.shards = shards};
  for (const Floats& sum : rank_sums(shards, group.place().size, group.place().rank, size))
    mine.sums.push_back(Tensor::from(sum, {size}));
  return mine;
}

TEST_P(AllGroups, Reduce_GivesTheBitsOfTheTree) {
  struct Case {
    std::int64_t shards;
    int ranks;
  };
  const std::int64_t sizes[] = {1, 0, 15, 33, 1000, 17};
  for (const auto& [shards, ranks] :
       {Case{1, 1}, Case{2, 2}, Case{8, 2}, Case{8, 3}, Case{5, 4}, Case{8, 8}, Case{64, 5}, Case{64, 7}}) {
    std::vector<Floats> expected;
    for (const std::int64_t size : sizes) expected.push_back(node_sum({0, shards}, size));
    on(ranks, [&, shards = shards](Group& group) {
      std::vector<Partials> mine;
      std::vector<Tensor> out;
      std::vector<Work> works;
      for (const std::int64_t size : sizes) {  // all under way at once
        mine.push_back(partials(shards, group, size));
        out.push_back(Tensor::empty({size}, DType::f32));
        works.push_back(group.reduce(mine.back(), out.back()));
      }
      for (Work& work : works) work.wait();
      for (std::size_t i = 0; i < expected.size(); ++i)
        EXPECT_TRUE(same_bits(out[i].to_vector<float>(), expected[i]))
            << shards << " shards, size " << sizes[i];
    });
  }
}

TEST_P(AllGroups, ReduceOfSeveralPieces_InPlace_GivesTheBitsOfTheTree) {
  constexpr std::int64_t size = 600'001;
  const Floats expected = node_sum({0, 6}, size);
  for (const int ranks : {2, 4})
    on(ranks, [&](Group& group) {
      for (int again = 0; again < 2; ++again) {
        const Partials mine = partials(6, group, size);
        group.reduce(mine, mine.sums.back()).wait();
        EXPECT_TRUE(same_bits(mine.sums.back().to_vector<float>(), expected)) << ranks;
      }
    });
}

TEST_P(AllGroups, SmallOperations_BetweenSums_AreIndependent) {
  const Floats expected = node_sum({0, 3}, 100'000);
  on(3, [&](Group& group) {
    const int rank = group.place().rank;
    const Partials mine = partials(3, group, 100'000);
    const Tensor out = Tensor::empty({100'000}, DType::f32);
    for (int round = 0; round < 5; ++round) {
      Work work = group.reduce(mine, out);
      for (int step = 0; step < 5; ++step) {
        const int value = rank * 100 + step;
        std::vector<int> all(3);
        group.all_gather(std::as_bytes(std::span(&value, 1)), std::as_writable_bytes(std::span(all)));
        EXPECT_EQ(all, (std::vector{step, 100 + step, 200 + step}));
      }
      work.wait();
      EXPECT_TRUE(same_bits(out.to_vector<float>(), expected));
    }
  });
}

TEST_P(AllGroups, Broadcast_FromAnyRank_ReachesAll) {
  for (const int ranks : {2, 5})
    on(ranks, [&](Group& group) {
      for (int from = 0; from < ranks; ++from)
        for (const std::size_t size : {0U, 1U, 700'000U}) {
          std::vector<unsigned char> bytes(
              size, static_cast<unsigned char>(group.place().rank == from ? from + 1 : 0));
          group.broadcast(std::as_writable_bytes(std::span(bytes)), from);
          EXPECT_EQ(bytes, std::vector<unsigned char>(size, static_cast<unsigned char>(from + 1)));
        }
    });
}

TEST_P(AllGroups, Barrier_ReturnsWhenAllHaveArrived) {
  std::atomic<int> arrived{0};
  on(4, [&](Group& group) {
    for (int round = 1; round <= 10; ++round) {
      ++arrived;
      group.barrier();
      EXPECT_GE(arrived, 4 * round);
    }
  });
}

TEST_P(AllGroups, Agree_GivesTheHighestSignalAnySaveAndTheStepsOfRank0) {
  on(3, [](Group& group) {
    const int rank = group.place().rank;
    EXPECT_EQ(group.agree({.steps = 100 - rank}), (Control{.steps = 100}));
    EXPECT_EQ(group.agree({.stop_signal = rank == 1 ? 15 : 0, .save = rank == 2, .steps = rank}),
              (Control{.stop_signal = 15, .save = true, .steps = 0}));
  });
}

TEST_P(AllGroups, Fail_EndsTheWaitsOfAllRanks) {
  const Errors errors = on_ranks(4, GetParam().make, [](Group& group) {
    if (group.place().rank == 2) {
      group.barrier();
      group.fail("the disk is full");
    } else if (group.place().rank == 3) {
      group.barrier();
      group.reduce(partials(4, group, 100'000), Tensor::empty({100'000}, DType::f32)).wait();
    } else {
      group.barrier();
      group.barrier();
    }
    group.barrier();
  });
  EXPECT_EQ(errors, Errors(4, "rank 2 on n1: the disk is full"));
}

TEST_P(AllGroups, ThrowIfFailed_ThrowsTheFailureWithoutAnOperation) {
  const Errors errors = on_ranks(3, GetParam().make, [](Group& group) {
    group.throw_if_failed();
    group.barrier();
    if (group.place().rank == 2) group.fail("the disk is full");
    for (;; std::this_thread::yield()) group.throw_if_failed();
  });
  EXPECT_EQ(errors, Errors(3, "rank 2 on n1: the disk is full"));
}

TEST_P(AllGroups, Places_AreThoseOfAllRanks) {
  on(3, [](Group& group) {
    ASSERT_EQ(group.places().size(), 3U);
    EXPECT_EQ(
        group.places()[2],
        (Place{.rank = 2, .size = 3, .local_rank = 0, .local_size = 1, .node = 1, .host = "n1", .pid = 102}));
    EXPECT_EQ(group.places()[1].local_size, 2);
  });
}

TEST(Group, Solo_AnswersForItself) {
  const auto group = solo_group();
  EXPECT_EQ(group->place().size, 1);
  const Tensor sum = Tensor::from(shard_values(0, 100), {100}), out = Tensor::empty({100}, DType::f32);
  group->reduce({.shards = 8, .sums = {sum}}, out).wait();
  EXPECT_EQ(out.to_vector<float>(), sum.to_vector<float>());
  group->barrier();
  EXPECT_EQ(group->agree({.stop_signal = 2, .save = true, .steps = 7}),
            (Control{.stop_signal = 2, .save = true, .steps = 7}));
}

TEST(Group, TensorsThatDoNotFit_AreNamed) {
  const auto group = solo_group();
  const Tensor three = Tensor::from(Floats{1, 2, 3}, {3}), two = Tensor::from(Floats{1, 2}, {2});
  EXPECT_EQ(error_text([&] {
              group->reduce({.shards = 4, .sums = {three, three}}, three);
            }),
            "[reduce] expected 1 partial sums from rank 0 of 1 with 4 shards, got 2");
  EXPECT_EQ(error_text([&] { group->reduce({.shards = 4, .sums = {two}}, three); }),
            "[reduce] expected tensors of 3 elements like the result, got one of 2");
  EXPECT_EQ(error_text([&] {
              group->reduce({.shards = 1, .sums = {three}}, Tensor({1, 2, 3}, DType::i64));
            }),
            "[reduce] expected contiguous tensors of f32");
}

TEST(Group, DifferentTexts_EndTheStartOnAllRanks) {
  const auto make = [](const Place& place, std::shared_ptr<LocalSegment> segment) {
    return local_group(place, std::move(segment),
                       {.must_agree = {{"options", place.rank == 2 ? "lr 0.2" : "lr 0.1"}}});
  };
  const Errors errors = on_ranks(4, make, [](Group&) { FAIL(); });
  EXPECT_EQ(errors,
            Errors(4, "[group] ranks 0 (host n0) and 2 (host n1) differ in options: lr 0.1 and lr 0.2"));
}

TEST(Group, DifferentSums_AreNamed) {
  for (const auto& make : {over_shared_memory(), over_messages()}) {
    const Errors errors = on_ranks(2, make, [](Group& group) {
      const std::int64_t size = group.place().rank == 0 ? 100 : 300;
      group.reduce(partials(2, group, size), Tensor::empty({size}, DType::f32)).wait();
    });
    for (const std::string& error : errors) {
      EXPECT_EQ(error.rfind("rank ", 0), 0U) << error;
      EXPECT_NE(error.find("expected a message of") == std::string::npos,
                error.find("100 numbers of 2 shards") == std::string::npos)
          << error;
    }
  }
}

TEST(Group, RankThatDoesNotCome_IsNamed) {
  const auto make = [](const Place& place, std::shared_ptr<LocalSegment> segment) -> std::unique_ptr<Group> {
    if (place.rank == 1) return solo_group();
    return local_group(place, std::move(segment), {.start_limit_s = 0.3});
  };
  const Errors errors = on_ranks(3, make, [](Group&) {});
  EXPECT_EQ(errors, (Errors{"rank 1 has not taken part in the start for 0.3 s", "",
                            "rank 1 has not taken part in the start for 0.3 s"}));
}

TEST(Group, RankThatTakesNoPart_IsNamed) {
  std::atomic<bool> ended{false};
  const Errors errors = on_ranks(2, over_shared_memory({.stall_limit_s = 0.3}), [&](Group& group) {
    if (group.place().rank == 0) {
      try {
        group.barrier();
      } catch (const LostRank&) {
        ended = true;
        ended.notify_all();
        throw;
      }
    } else {
      ended.wait(false);
    }
  });
  EXPECT_EQ(errors,
            (Errors{"rank 1 (host n0, process 101) has not taken part in an all-gather for 0.3 s", ""}));
}

TEST(Group, RankThatLeft_IsNamed) {
  const Errors errors = on_ranks(2, over_messages(), [](Group& group) {
    if (group.place().rank == 0) group.barrier();
  });
  EXPECT_EQ(errors, (Errors{"rank 1 (host n0, process 101) has left the group", ""}));
}

TEST(Group, LostMessages_EndInTheNameOfARank) {
  const Errors errors =
      on_ranks(3, over_slow_messages({.seed = 5, .lost_after = 30}, {.limit_s = 0.5, .stall_limit_s = 2}),
               [](Group& group) {
                 while (true) group.barrier();
               });
  for (const std::string& error : errors)
    EXPECT_NE(error.find(" has not answered for 0.5 s"), std::string::npos) << error;
}

}  // namespace
}  // namespace tandem
