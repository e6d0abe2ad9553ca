#include "tandem/data/batches.h"

#include <algorithm>
#include <limits>

#include "tandem/core/check.h"
#include "tandem/core/parallel.h"
#include "tandem/data/batches_kernel.h"
#include "tandem/device/on_backend.h"
#include "tandem/tensor/copy.h"

namespace tandem {

ClassLists::ClassLists(std::int64_t count, const std::function<std::int32_t(std::int64_t)>& label) {
  std::vector<std::vector<std::int32_t>> classes;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto one = static_cast<std::size_t>(label(i));
    if (one >= classes.size()) classes.resize(one + 1);
    classes[one].push_back(static_cast<std::int32_t>(i));
  }
  begin_.push_back(0);
  for (const std::vector<std::int32_t>& samples : classes) {
    if (samples.empty()) continue;
    samples_.insert(samples_.end(), samples.begin(), samples.end());
    begin_.push_back(std::ssize(samples_));
  }
}

void check_batch_plan(const BatchPlan& plan) {
  check(plan.samples >= 1 && plan.samples <= std::numeric_limits<std::int32_t>::max(),
        "[batches] expected 1 to 2147483647 samples, got {}", plan.samples);
  check(plan.batch_size >= 1 && plan.batch_size <= 1 << 20,
        "[batches] expected a batch size from 1 to {}, got {}", 1 << 20, plan.batch_size);
  check(plan.batches_per_epoch >= 0 && plan.batches_per_epoch <= std::int64_t{1} << 31,
        "[batches] expected 0 to 2147483648 batches per epoch, got {}", plan.batches_per_epoch);
  check(plan.shuffle || plan.balanced.classes == 0,
        "[batches] expected shuffled samples with balanced classes, got the stored order");
  const BatchPart& part = plan.part;
  check(part.shards >= 1, "[batches] expected at least 1 shard, got {}", part.shards);
  check(part.shards <= plan.batch_size,
        "[batches] expected at most {} shards, one per image of a batch, got {}", plan.batch_size,
        part.shards);
  check(part.own.begin >= 0 && part.own.begin < part.own.end && part.own.end <= part.shards,
        "[batches] expected at least one of the shards 0 to {}, got [{}, {})", part.shards - 1,
        part.own.begin, part.own.end);
  check(!part.previous_row || !part.is_whole(),
        "[batches] expected a part of a batch with previous_row, got all {} shards", part.shards);
}

namespace detail {

template <>
void order_kernel<Backend::cpu>(const BatchPlan& plan, std::int64_t epoch, std::int64_t first,
                                std::int32_t* out, std::int64_t count, StreamView) {
  const SampleOrder order = sample_order(plan, epoch);
  parallel_for(count, 4096, [&](std::int64_t begin, std::int64_t end) {
    Shuffle shuffle = order.shuffle(0);
    std::int64_t pass = 0;
    for (std::int64_t i = begin; i < end; ++i) out[i] = order.draw_local(first + i, shuffle, pass).sample;
  });
}

}  // namespace detail

void fill_order(const BatchPlan& plan, std::int64_t epoch, std::int64_t first, const Tensor& out) {
  expect(out.is_contiguous() && first >= 0 && first + out.numel() <= plan.local_positions());
  if (out.numel() == 0) return;
  if (plan.balanced.classes > 0 && out.device().is_cuda()) {  // the table is on the host
    const Tensor on_host = Tensor::empty(out.shape(), DType::i32);
    fill_order(plan, epoch, first, on_host);
    copy_into(out, on_host.to(out.device()));
    return;
  }
  on_backend(out.device(), "batches", [&]<Backend B>() {
    detail::order_kernel<B>(plan, epoch, first, out.data<std::int32_t>(), out.numel(),
                            current_stream(out.device()));
  });
}

void fill_keys(const BatchPlan& plan, std::int64_t epoch, std::int64_t first, const Tensor& out) {
  expect(out.is_contiguous() && first >= 0 && first + out.numel() <= plan.local_positions());
  const Tensor on_host = Tensor::empty(out.shape(), DType::i32);
  std::int32_t* const keys = on_host.data<std::int32_t>();
  const detail::SampleOrder order = detail::sample_order(plan, epoch);
  parallel_for(out.numel(), 1024, [&](std::int64_t begin, std::int64_t end) {
    Shuffle shuffle = order.shuffle(0);
    std::int64_t pass = 0;
    for (std::int64_t i = begin; i < end; ++i)
      keys[i] = static_cast<std::int32_t>(order.draw_local(first + i, shuffle, pass).key);
  });
  copy_into(out, on_host.to(out.device()));
}

}  // namespace tandem
