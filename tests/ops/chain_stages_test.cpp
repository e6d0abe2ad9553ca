// Chains of convolutions in bf16 with every kernel of this CPU, the plain one too, against the same
// convolutions one by one.
#include "tandem/ops/conv/chain_stages.h"

#include "tandem/core/parallel.h"
#include "tests/ops/chain_links.h"
#include "tests/ops/op_test.h"

namespace tandem::detail {
namespace {

struct BlockWeight {
  Conv2dOptions options;
  Shape shape;
  Tensor packed, bias;
};

class ChainStagesTest : public testing::TestWithParam<MatrixIsa> {
 protected:
  using Stages = ChainStages<BlockWeight>;

  ChainStagesTest() {
    for (const ChainLink& link : chain_links) {
      const auto seed = static_cast<std::uint32_t>(weights_.size());
      const double limit = 1.5 / std::sqrt(static_cast<double>(link.kernel * link.kernel * link.channels));
      const Tensor weight = random_tensor({link.filters, link.kernel, link.kernel, link.channels},
                                          DType::bf16, cpu_device, seed, -limit, limit);
      BlockWeight& made = weights_.emplace_back(
          BlockWeight{.options = {.window = {.stride = link.stride, .padding = link.kernel / 2}},
                      .shape = weight.shape(),
                      .packed = {},
                      .bias = random_tensor({link.filters}, DType::f32, cpu_device, 100 + seed)});
      const Conv2dPlan plan = plan_of(made, {1, 8, 8, link.channels});
      made.packed = Tensor::empty({block_conv_weight_bytes(plan, MatrixType::bf16)}, DType::u8);
      pack_block_conv_weight(plan, MatrixType::bf16, made.packed.bytes(), weight.bytes());
    }
    steps_ = steps_of_links(weights_);
  }
  ~ChainStagesTest() override { set_thread_count(usable_cpus()); }

  static Conv2dPlan plan_of(const BlockWeight& weight, const Shape& images) {
    return conv2d_plan(images, DType::bf16, weight.shape, weight.options);
  }
  static BlockConv conv_of(const ConvStep<BlockWeight>& step, const Stages::Operands& operands) {
    return {.plan = operands.plan,
            .isa = GetParam(),
            .x = operands.x,
            .packed = step.conv->packed.bytes(),
            .y = operands.y,
            .epilogue = {.bias = step.conv->bias.data<float>(),
                         .residual = operands.residual,
                         .activation = step.activation}};
  }

  std::vector<double> one_by_one(const Tensor& x) const {
    std::vector<Tensor> values{x};
    for (const ConvStep<BlockWeight>& step : steps_) {
      const Conv2dPlan plan = plan_of(*step.conv, values[step.input].shape());
      const Tensor y = Tensor::empty({plan.images, plan.out.y, plan.out.x, plan.filters}, DType::bf16);
      block_conv2d(conv_of(step, {.plan = plan,
                                  .x = values[step.input].bytes(),
                                  .y = y.bytes(),
                                  .residual = step.residual ? values[*step.residual].bytes() : nullptr}));
      values.push_back(y);
    }
    return values_of(values.back());
  }

  std::vector<double> as_chain(const Tensor& x) const {
    Stages stages(steps_, x.shape(), 2, plan_of);
    const Tensor y = Tensor::empty(stages.result(), DType::bf16);
    std::vector<ChainStage> chain;
    stages.append_to(chain, x.bytes(), std::nullopt, y.bytes(), conv_of);
    block_conv_chain(chain);
    return values_of(y);
  }

  std::vector<BlockWeight> weights_;
  std::vector<ConvStep<BlockWeight>> steps_;
};

TEST_P(ChainStagesTest, AnyThreads_GivesTheBitsOfOneByOne) {
  for (const std::int64_t images : {1, 3, 20}) {
    // In turn, so that what one leaves in memory is wrong for the other.
    Tensor x[2];
    std::vector<double> expected[2];
    set_thread_count(1);
    for (const std::uint32_t i : {0, 1}) {
      x[i] = random_tensor({images, 23, 17, 64}, DType::bf16, cpu_device, 7 + i);
      expected[i] = one_by_one(x[i]);
    }
    for (const int threads : {1, 2, 3, 16})
      for (const std::size_t i : {0, 1, 0}) {
        set_thread_count(threads);
        EXPECT_EQ(as_chain(x[i]), expected[i]) << images << " images, " << threads << " threads";
      }
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, ChainStagesTest, testing::ValuesIn(available_matrix_isas(MatrixType::bf16)),
                         [](const auto& isa) { return std::string(name_of(isa.param)); });

TEST(LastUses, CountInputsAndResiduals) {
  const std::vector<ConvStep<int>> steps{{nullptr, FusedActivation::relu, 0, {}},
                                         {nullptr, FusedActivation::relu, 1, 0},
                                         {nullptr, FusedActivation::relu, 2, {}}};
  EXPECT_EQ(last_uses(std::span(steps)), (std::vector<std::size_t>{1, 1, 2, 3}));
}

}  // namespace
}  // namespace tandem::detail
