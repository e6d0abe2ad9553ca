// What a Trace keeps of recorded operations.
#include <gtest/gtest.h>

#include "tandem/tensor/tape.h"

namespace tandem {
namespace {

TEST(Trace, RecordedOperations_AreListedInOrder) {
  Tensor x({{1., 2., 3.}, {4., 5., 6.}});
  x.set_requires_grad();
  const Tensor before = x.reshape({3, 2});
  Tensor y, z;
  {
    const Trace trace;
    {
      const NoGrad no_grad;
      x.reshape({6});
    }
    y = x.reshape({1, 6});
    z = y.transpose();
    {
      const Trace inner;
      z.clone();
      EXPECT_EQ(inner.ops().size(), 1u);
    }
    trace_option("number", 2.0);
    ASSERT_EQ(trace.ops().size(), 2u);
    const TracedOp& reshaped = trace.ops()[0];
    EXPECT_STREQ(reshaped.name, "reshape");
    EXPECT_EQ(reshaped.inputs[0].node(), x.node());
    EXPECT_EQ(reshaped.output.node(), y.node());
    const TracedOp& permuted = trace.ops()[1];
    EXPECT_STREQ(permuted.name, "permute");
    EXPECT_EQ(permuted.sizes.at("inverse"), (Dims{1, 0}));
    EXPECT_EQ(permuted.numbers.at("number"), 2.0);
  }
  trace_option("number", 3.0);  // without a Trace it has no effect
  EXPECT_EQ(x.reshape({6}).shape(), (Shape{6}));
}

}  // namespace
}  // namespace tandem
