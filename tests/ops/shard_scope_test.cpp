#include "tandem/ops/shard_scope.h"

#include "tandem/ops/cast.h"
#include "tandem/ops/conv/batch_norm.h"
#include "tandem/ops/conv/conv2d.h"
#include "tandem/ops/cross_entropy.h"
#include "tandem/ops/fill.h"
#include "tandem/ops/gather.h"
#include "tandem/ops/linear.h"
#include "tandem/ops/matmul.h"
#include "tandem/ops/maximum.h"
#include "tandem/ops/mse.h"
#include "tandem/ops/shard_sums.h"
#include "tandem/tensor/tape.h"
#include "tests/ops/op_test.h"

namespace tandem {
namespace {

// The tests that compute shards, on every device.
class ShardedOps : public testing::TestWithParam<Device> {
 protected:
  Device device() const { return GetParam(); }
  Tensor random(const Shape& shape, DType dtype, std::uint32_t seed, double low = -2, double high = 2) const {
    return random_tensor(shape, dtype, device(), seed, low, high);
  }
  Tensor parameter(const Shape& shape, std::uint32_t seed, DType dtype = DType::f32) const {
    return random(shape, dtype, seed).set_requires_grad();
  }
  Tensor labels(const std::vector<std::int64_t>& values) const {
    return Tensor::from(values, {static_cast<std::int64_t>(values.size())}, device());
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, ShardedOps, testing::ValuesIn(test_devices()), device_name);

TEST(ShardScope, ImpossibleParts_AreRefused) {
  EXPECT_EQ(error_text([] {
              ShardScope({.shards = 4, .own = {1, 5}, .rows = 8});
            }),
            "[shard scope] expected some of 4 shards, got shards 1 to 5");
  EXPECT_EQ(error_text([] {
              ShardScope({.shards = 4, .own = {2, 2}, .rows = 8});
            }),
            "[shard scope] expected some of 4 shards, got shards 2 to 2");
  EXPECT_EQ(error_text([] { ShardScope({.rows = -1}); }), "[shard scope] expected 0 rows or more, got -1");
}

TEST(ShardScope, OneShard_IsAsWithoutAScope) {
  EXPECT_EQ(detail::shard_part(), nullptr);
  const ShardScope one({.shards = 1, .own = {0, 1}, .rows = 8});
  EXPECT_EQ(detail::shard_part(), nullptr);
  {
    const ShardScope two({.shards = 2, .own = {1, 2}, .rows = 9});
    ASSERT_NE(detail::shard_part(), nullptr);
    EXPECT_EQ(detail::local_rows(*detail::shard_part()), (IndexRange{4, 9}));
    const detail::WithoutShards none;
    EXPECT_EQ(detail::shard_part(), nullptr);
  }
  EXPECT_EQ(detail::shard_part(), nullptr);
}

TEST(ShardScope, ShardRanges_AreLocalAndMayHaveSeveralElementsPerRow) {
  const ShardPart part{.shards = 4, .own = {1, 4}, .rows = 10};  // rows 2 to 5, 5 to 7, 7 to 10
  EXPECT_EQ(detail::shard_ranges(part, 8, "op"), (std::vector<IndexRange>{{0, 3}, {3, 5}, {5, 8}}));
  EXPECT_EQ(detail::shard_ranges(part, 16, "op"), (std::vector<IndexRange>{{0, 6}, {6, 10}, {10, 16}}));
  EXPECT_EQ(error_text([&] { detail::shard_ranges(part, 10, "op"); }),
            "[op] expected the 8 rows of this part of the batch in axis 0, got 10");
}

// The definition, written out: ((s0 + s1) + (s2 + s3)), rounded to f32 after each addition.
TEST_P(ShardedOps, LinearGradients_AreTreeSumsOfTheShards) {
  const Tensor x = random({10, 7}, DType::f32, 1);
  const Tensor g = random({10, 5}, DType::f32, 2);
  const Tensor weight = parameter({5, 7}, 3), bias = parameter({5}, 4);
  std::vector<Tensor> weights, biases;
  for (const auto& [begin, end] : {std::pair{0, 2}, {2, 5}, {5, 7}, {7, 10}}) {
    const Tensor w = weight.detach().clone().set_requires_grad(),
                 b = bias.detach().clone().set_requires_grad();
    backward(linear(x.slice(0, begin, end).clone(), w, b), g.slice(0, begin, end).clone());
    weights.push_back(w.grad());
    biases.push_back(b.grad());
  }
  const auto tree = [](const std::vector<Tensor>& s) { return add(add(s[0], s[1]), add(s[2], s[3])); };
  {
    const ShardScope scope({.shards = 4, .own = {0, 4}, .rows = 10});
    backward(linear(x, weight, bias), g);
  }
  EXPECT_EQ(values_of(weight.grad()), values_of(tree(weights)));
  EXPECT_EQ(values_of(bias.grad()), values_of(tree(biases)));
  const Tensor w = weight.detach().clone().set_requires_grad();
  {
    const ShardScope scope({.shards = 4, .own = {1, 4}, .rows = 10});  // shard 1, and the node of 2 and 3
    backward(linear(x.slice(0, 2, 10), w, {}), g.slice(0, 2, 10));
  }
  ASSERT_EQ(w.grad().shape(), (Shape{2, 5, 7}));
  EXPECT_EQ(values_of(w.grad()[0]), values_of(weights[1]));
  EXPECT_EQ(values_of(w.grad()[1]), values_of(add(weights[2], weights[3])));
}

// Parameters that are broadcast in every way, and computed from before they meet the batch.
TEST_P(ShardedOps, BroadcastParameters_HaveTheGradientsOfTheWholeBatch) {
  const Tensor x = random({10, 3, 4}, DType::f64, 1);
  const Tensor index = labels({0, 2, 1, 1, 0, 2, 2, 2, 0, 1});
  const auto loss = [&](const std::vector<Tensor>& p) {
    Tensor y = add(multiply(x, p[0]), p[1]);                       // (4), []
    y = subtract(maximum(y, p[2]), divide(p[3], add(p[3], 5.0)));  // (1, 3, 1), (3, 1)
    y = add(y, gather_rows(p[4], index).reshape({10, 3, 1}));      // (3, 3) by rows
    y = multiply(y, cast(cast(p[5], DType::f32), DType::f64));     // (3, 4)
    return mean(multiply(y, multiply(p[0], p[0])));
  };
  const std::vector<Shape> shapes{{4}, {}, {1, 3, 1}, {3, 1}, {3, 3}, {3, 4}};
  const auto gradients = [&] {
    std::vector<Tensor> parameters;
    for (std::size_t i = 0; i < shapes.size(); ++i)
      parameters.push_back(parameter(shapes[i], static_cast<std::uint32_t>(i + 2), DType::f64));
    backward(loss(parameters));
    std::vector<Tensor> result;
    for (const Tensor& p : parameters) result.push_back(p.grad());
    return result;
  };
  const auto expected = gradients();
  const ShardScope scope({.shards = 4, .own = {0, 4}, .rows = 10});
  const auto actual = gradients();
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    ASSERT_EQ(actual[i].shape(), shapes[i]);
    expect_values(actual[i], values_of(expected[i]), i == 5 ? 1e-6 : 1e-14);
  }
}

TEST_P(ShardedOps, Losses_AreMeansOverTheWholeBatch) {
  const Tensor logits = random({6, 5}, DType::f64, 1);
  const Tensor target = random({6, 5}, DType::f64, 2);
  const Tensor targets = labels({0, 1, 2, 3, 4, 0});
  const std::vector<std::function<Tensor(const Tensor&, IndexRange)>> losses{
      [&](const Tensor& x, IndexRange rows) {
        return cross_entropy(x, targets.slice(0, rows.begin, rows.end), 0.2);
      },
      [&](const Tensor& x, IndexRange rows) { return mse_loss(x, target.slice(0, rows.begin, rows.end)); },
      [&](const Tensor& x, IndexRange) { return mean(multiply(x, x)); }};
  for (const auto& loss : losses) {
    double total = 0;
    for (const IndexRange own : {IndexRange{0, 1}, IndexRange{1, 3}}) {
      const ShardScope scope({.shards = 3, .own = own, .rows = 6});
      const IndexRange rows = rows_of_shards(6, 3, own);
      total += loss(logits.slice(0, rows.begin, rows.end), rows).item<double>();
    }
    EXPECT_NEAR(total, loss(logits, {0, 6}).item<double>(), 1e-14);
  }
}

TEST_P(ShardedOps, PartWithoutRows_GivesZeros) {
  const ShardScope scope({.shards = 4, .own = {0, 1}, .rows = 3});
  const Tensor weight = parameter({5, 7}, 1), bias = parameter({5}, 2);
  const Tensor loss = cross_entropy(linear(zeros({0, 7}, DType::f32, device()), weight, bias),
                                    zeros({0}, DType::i64, device()));
  EXPECT_EQ(loss.item<float>(), 0);
  backward(loss);
  EXPECT_EQ(values_of(weight.grad()), std::vector<double>(35, 0));
  EXPECT_EQ(values_of(bias.grad()), std::vector<double>(5, 0));
}

TEST_P(ShardedOps, GradientsThatAreNoSumsOverRows_AreRefused) {
  const Tensor x = random({8, 7}, DType::f32, 1);
  const Tensor weight = parameter({5, 7}, 3);
  const ShardScope scope({.shards = 2, .own = {0, 2}, .rows = 8});
  const Tensor decayed = add(mean(linear(x, weight, {})), multiply(sum(multiply(weight, weight)), 0.1));
  EXPECT_EQ(
      error_text([&] { backward(decayed); }),
      "[backward] expected the gradients of parameters to be sums over the rows of the batch, which has "
      "2 shards, got one of shape [5, 7] for the leaf of shape [5, 7]: an operation or a term of the "
      "loss does not keep the rows apart");
  const Tensor y = linear(x, weight, {});
  const Tensor centered = mean(multiply(y, subtract(y, mean(y, {0}))));  // rows see each other
  EXPECT_NE(error_text([&] { backward(centered); }).find("does not keep the rows apart"), std::string::npos);
}

TEST_P(ShardedOps, SecondBackward_IsRefusedUntilTheGradientIsDropped) {
  const Tensor x = random({8, 7}, DType::f32, 1);
  const Tensor weight = parameter({5, 7}, 3);
  const ShardScope scope({.shards = 2, .own = {0, 2}, .rows = 8});
  backward(mean(linear(x, weight, {})));
  EXPECT_EQ(error_text([&] { backward(mean(linear(x, weight, {}))); }),
            "[backward] expected leaves without a gradient inside a ShardScope, got one of shape [5, 7]");
  weight.set_grad({});
  EXPECT_NO_THROW(backward(mean(linear(x, weight, {}))));
}

TEST_P(ShardedOps, BackwardOutsideTheScope_IsRefused) {
  const Tensor x = random({8, 7}, DType::f32, 1);
  const Tensor weight = parameter({5, 7}, 3);
  const Tensor loss = [&] {
    const ShardScope scope({.shards = 2, .own = {0, 2}, .rows = 8});
    return cross_entropy(linear(x, weight, {}), zeros({8}, DType::i64, device()));
  }();
  EXPECT_EQ(error_text([&] { backward(loss); }),
            "[cross_entropy] expected backward() inside the ShardScope of the forward pass");
}

TEST_P(ShardedOps, BatchNorm_RefusesWhatItCannotNormalize) {
  const auto values = [&](double value) { return full({4}, value, DType::f32, device()); };
  const Tensor weight = values(1), bias = values(0);
  BatchNormStatistics statistics{.mean = values(0), .variance = values(1)};
  const auto norm = [&](const ShardPart& part, const Shape& shape, BatchNormOptions options) {
    const ShardScope scope(part);
    batch_norm(random(shape, DType::f32, 1), weight, bias, statistics, options);
  };
  const ShardPart all{.shards = 4, .own = {0, 4}, .rows = 6};
  EXPECT_NO_THROW(norm(all, {6, 4}, {}));
  ShardPart alone = all;
  alone.norm = ShardNorm::shard;  // 1, 2, 1 and 2 rows
  EXPECT_EQ(error_text([&] {
              norm(alone, {6, 4}, {});
            }),
            "[batch_norm] expected more than one value per channel in every shard, got one in shard 0 of 4");
  EXPECT_NO_THROW(norm(alone, {6, 2, 1, 4}, {}));
  EXPECT_EQ(error_text([&] {
              norm({.shards = 2, .own = {0, 2}, .rows = 1}, {1, 4}, {});
            }),
            "[batch_norm] expected more than one value per channel in training, got a batch of 1 rows");
  EXPECT_EQ(error_text([&] {
              norm({.shards = 2, .own = {0, 1}, .rows = 6}, {3, 4}, {});
            }),
            "[batch_norm] expected ShardPart::gather where other ranks have shards, got an empty function");
  EXPECT_EQ(error_text([&] {
              norm(all, {6, 4}, {.ghost_batch_rows = 2});
            }),
            "[batch_norm] expected no ghost batches in a batch of 4 shards");
}

// Each shard by its own statistics is what separate calls give; the running statistics are the whole batch's.
TEST_P(ShardedOps, BatchNormPerShard_IsABatchNormOfEachShard) {
  constexpr std::int64_t rows = 7, channels = 5;
  const Tensor x = random({rows, 3, 2, channels}, DType::f64, 1);
  const Tensor g = random(x.shape(), DType::f64, 2);
  const Tensor before = random({1}, DType::f64, 3).set_requires_grad();
  const auto norm = [&](const Tensor& images, const Tensor& gradient, BatchNormStatistics& statistics) {
    const Tensor weight = parameter({channels}, 4, DType::f64), bias = parameter({channels}, 5, DType::f64);
    const Tensor y =
        batch_norm(multiply(images, before), weight, bias, statistics, {.activation = FusedActivation::relu});
    before.set_grad({});
    backward(y, gradient);
    return std::vector<Tensor>{y.detach(), weight.grad(), bias.grad(), before.grad()};
  };
  const auto statistics = [&] {
    return BatchNormStatistics{.mean = zeros({channels}, DType::f64, device()),
                               .variance = ones({channels}, DType::f64, device())};
  };
  BatchNormStatistics whole = statistics(), sharded = statistics();
  norm(x, g, whole);
  std::vector<std::vector<Tensor>> separate;
  for (std::int64_t shard = 0; shard < 3; ++shard) {
    const auto [begin, end] = rows_of_shards(rows, 3, {shard, shard + 1});
    BatchNormStatistics ignored = statistics();
    separate.push_back(norm(x.slice(0, begin, end), g.slice(0, begin, end), ignored));
  }
  const ShardScope scope({.shards = 3, .own = {0, 3}, .rows = rows, .norm = ShardNorm::shard});
  const std::vector<Tensor> actual = norm(x, g, sharded);
  for (std::int64_t shard = 0; shard < 3; ++shard) {
    const auto [begin, end] = rows_of_shards(rows, 3, {shard, shard + 1});
    expect_values(actual[0].slice(0, begin, end), values_of(separate[static_cast<std::size_t>(shard)][0]),
                  1e-13);
  }
  for (std::size_t i = 1; i < actual.size(); ++i)
    expect_values(actual[i], values_of(add(add(separate[0][i], separate[1][i]), separate[2][i])), 1e-12);
  expect_values(sharded.mean, values_of(whole.mean), 1e-14);
  expect_values(sharded.variance, values_of(whole.variance), 1e-14);
}

// In f64, where rounding cannot hide a wrong term.
TEST_P(ShardedOps, ConvolutionNormAndLinear_HaveTheGradientsOfTheWholeBatch) {
  constexpr std::int64_t rows = 11;
  const Tensor x = random({rows, 7, 6, 3}, DType::f64, 1);
  const Tensor targets = random({rows}, DType::i64, 2, 0, 4);
  const std::vector<Shape> shapes{{5, 3, 3, 3}, {5}, {5}, {5}, {4, 100}, {4}};
  const auto gradients = [&] {
    std::vector<Tensor> p;
    for (const Shape& shape : shapes)
      p.push_back(parameter(shape, static_cast<std::uint32_t>(p.size() + 3), DType::f64));
    BatchNormStatistics statistics{.mean = zeros({5}, DType::f64, device()),
                                   .variance = ones({5}, DType::f64, device())};
    const Tensor y =
        batch_norm(conv2d(x, p[0], p[1]), p[2], p[3], statistics, {.activation = FusedActivation::relu});
    const Tensor loss = cross_entropy(linear(y.reshape({rows, 100}), p[4], p[5]), targets, 0.1);
    backward(loss);
    std::vector<Tensor> result{loss.detach(), statistics.mean, statistics.variance};
    for (const Tensor& one : p) result.push_back(one.grad());
    return result;
  };
  const std::vector<Tensor> expected = gradients();
  for (const std::int64_t shards : {2, 3, 8}) {
    const ShardScope scope({.shards = shards, .own = {0, shards}, .rows = rows});
    const std::vector<Tensor> actual = gradients();
    for (std::size_t i = 0; i < expected.size(); ++i) {
      ASSERT_EQ(actual[i].shape(), expected[i].shape());
      expect_values(actual[i], values_of(expected[i]), 1e-12);
    }
  }
}

// What a GPU computes for each shard, and what it sums over other axes than the rows.
TEST_P(ShardedOps, Parts_HaveTheBitsOfTheWhole) {
  constexpr std::int64_t rows = 23, shards = 8;
  const std::vector<std::function<Tensor(const Tensor&)>> operations{
      [&](const Tensor& x) {
        return linear(x.reshape({x.size(0), 8 * 7 * 3}), parameter({10, 168}, 2), {});
      },
      [&](const Tensor& x) {
        return conv2d(x, parameter({6, 3, 3, 3}, 2), parameter({6}, 3));
      },
      [&](const Tensor& x) {
        return conv2d(cast(x, DType::bf16), parameter({6, 3, 3, 3}, 2), {}, {.window = {.stride = {2, 2}}});
      },
      [&](const Tensor& x) {
        return sum(multiply(x, parameter({3}, 2)), {1, 2});
      },
      [&](const Tensor& x) {
        return mean(multiply(x.reshape({x.size(0), 168}), parameter({168}, 2)), {1});
      }};
  for (std::size_t i = 0; i < operations.size(); ++i) {
    const auto run = [&](IndexRange own, std::vector<double>& outputs, std::vector<double>& gradients) {
      const ShardScope scope({.shards = shards, .own = own, .rows = rows});
      const auto [begin, end] = rows_of_shards(rows, shards, own);
      Tensor x = random({rows, 8, 7, 3}, DType::f32, 1).slice(0, begin, end).clone(), dx;
      const Tensor leaf = parameter({}, 5);
      record(x, "probe", {&leaf}, [&](const Tensor& g) {
        dx = g;
        return Gradients{Tensor()};
      });
      const Tensor y = operations[i](x), g = random({rows, 400}, y.dtype(), 4).slice(0, begin, end);
      backward(y, g.slice(1, 0, y.numel() / y.size(0)).contiguous().reshape(y.shape()));
      for (const double value : values_of(y)) outputs.push_back(value);
      for (const double value : values_of(dx)) gradients.push_back(value);
    };
    std::vector<double> outputs, gradients, part_outputs, part_gradients;
    run({0, shards}, outputs, gradients);
    for (const IndexRange own : {IndexRange{0, 1}, IndexRange{1, 4}, IndexRange{4, 8}})
      run(own, part_outputs, part_gradients);
    EXPECT_EQ(part_outputs, outputs) << "operation " << i;
    EXPECT_EQ(part_gradients, gradients) << "operation " << i;
  }
}

TEST_P(ShardedOps, ProductsThatCannotKeepTheirBits_AreRefused) {
  const Tensor x = random({8, 7}, DType::f32, 1), weight = random({7, 5}, DType::f32, 2);
  const ShardScope scope({.shards = 2, .own = {0, 2}, .rows = 8});
  if (device().is_cuda())
    EXPECT_EQ(error_text([&] { matmul(x, weight); }),
              "[matmul] expected linear() in a batch of 2 shards on CUDA, got matmul(), whose bits would "
              "depend on which of the shards are computed here");
  else
    EXPECT_NO_THROW(matmul(x, weight));
}

TEST_P(ShardedOps, SumOfAnyNodes_IsThatOfTheTree) {
  std::vector<Tensor> shards;
  for (std::uint32_t i = 0; i < 7; ++i) shards.push_back(random({3001}, DType::f32, i, -1e3, 1e3));
  const auto sum = [&](auto&& self, IndexRange node) -> Tensor {
    if (node.count() == 1) return shards[static_cast<std::size_t>(node.begin)];
    return add(self(self, {node.begin, tree_middle(node)}), self(self, {tree_middle(node), node.end}));
  };
  const Tensor whole = sum_tree(7, {0, 7}, single_shards({0, 7}), shards);
  EXPECT_EQ(values_of(whole), values_of(sum(sum, {0, 7})));
  std::vector<IndexRange> nodes;
  std::vector<Tensor> sums;
  for (std::int64_t rank = 0; rank < 3; ++rank) {
    const IndexRange own = part_of(7, 3, rank);
    const Tensor part =
        sum_tree(7, own, single_shards(own), std::span(shards).subspan(own.begin, own.count()));
    const auto cover = tree_cover(7, own);
    for (std::size_t i = 0; i < cover.size(); ++i) {
      nodes.push_back(cover[i]);
      sums.push_back(cover.size() == 1 ? part : part[static_cast<std::int64_t>(i)]);
      EXPECT_EQ(values_of(sums.back()), values_of(sum(sum, cover[i])));
    }
  }
  EXPECT_EQ(values_of(sum_tree(7, {0, 7}, nodes, sums)), values_of(whole));
}

// Numbers of shards with a kernel of their own, without, and with too many operands for one; aligned and not.
TEST_P(ShardedOps, SumTree_HasTheBitsOfTheDefinition) {
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16})
    for (const std::int64_t count : {1024, 35})
      for (const std::int64_t shards : {2, 3, 8, 11, 16, 32, 64, 70}) {
        const Tensor stack = random_tensor({shards, count}, dtype, cpu_device, 1, -1e3, 1e3);
        const auto sum = [&](auto&& self, IndexRange node) -> Tensor {
          if (node.count() == 1) return stack[node.begin];
          return add(self(self, {node.begin, tree_middle(node)}), self(self, {tree_middle(node), node.end}));
        };
        const Tensor here = stack.to(device());
        std::vector<Tensor> sums;
        for (std::int64_t shard = 0; shard < shards; ++shard) sums.push_back(here[shard]);
        EXPECT_EQ(values_of(sum_tree(shards, {0, shards}, single_shards({0, shards}), sums)),
                  values_of(sum(sum, {0, shards})))
            << shards << " shards of " << count << " " << name_of(dtype);
      }
}

TEST(SumTree, TensorsThatDoNotMatch_AreRefused) {
  EXPECT_EQ(error_text([] {
              sum_tree(2, {0, 2}, single_shards({0, 2}), std::vector<Tensor>{zeros({3})});
            }),
            "[sum_tree] expected one tensor for each of 2 nodes, got 1");
  EXPECT_EQ(error_text([] {
              sum_tree(2, {0, 2}, single_shards({0, 2}), std::vector<Tensor>{zeros({3}), zeros({4})});
            }),
            "[sum_tree] expected contiguous tensors of shape [3], got [4]");
}

}  // namespace
}  // namespace tandem
