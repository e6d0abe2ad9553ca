#include "tandem/train/engines/cpu_mlp.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "tandem/core/check.h"
#include "tandem/ops/vector_math.h"
#include "tandem/tensor/copy.h"
#include "tandem/train/engines/mlp_tiles.h"
#include "tandem/train/engines/rank_exchange.h"

namespace tandem {
namespace {

using namespace detail;

// Rows are processed in multiples of this.
constexpr std::int64_t row_group = 16;

constexpr std::int64_t padded_rows(std::int64_t rows) {
  return (rows + row_group - 1) / row_group * row_group;
}

// Distance between blocks of columns, in rows. Odd, because with a power of two all blocks would map to the
// same cache sets.
constexpr std::int64_t row_stride(std::int64_t rows) {
  return rows | 1;
}

// Up to this size a batch fits in the L2 cache of a core together with its part of the weights.
constexpr std::int64_t max_own_floats = 1 << 17;
// Up to this number, threads share the unpacked batch: unpacking it again costs more than reading it.
constexpr int max_sharing_threads = 4;

Tensor zeroed(std::int64_t floats) {
  Tensor memory = Tensor::empty({floats}, DType::f32);
  clear(memory);
  return memory;
}

struct RowPart {
  std::int64_t begin, end;
};

// The granularity of dividing rows: whole tiles, but small enough that two threads can share a batch of 16.
std::int64_t row_granularity() {
  return simd_level() == SimdLevel::avx512 ? 16 : 8;
}

RowPart own_rows(const TeamMember& member, std::int64_t rows) {
  const std::int64_t group = row_granularity();
  return {member.begin(rows / group) * group, member.end(rows / group) * group};
}

// Whether a batch is too large for the cache of a core.
constexpr bool many_rows(std::int64_t rows) {
  return rows > 256;
}

// With about as many threads as blocks, each thread keeps its block, and weights never move between cores.
constexpr bool keep_blocks(std::int64_t rows, std::int64_t blocks, int threads) {
  return !many_rows(rows) && threads >= blocks && threads < 2 * blocks;
}

// Rows per unit of work, when the work is also divided by blocks of columns: coarse, but fine enough to
// balance the threads.
std::int64_t rows_per_unit(std::int64_t rows, std::int64_t blocks, int threads) {
  if (rows == 0) return 1;
  if (keep_blocks(rows, blocks, threads)) return rows;
  std::int64_t unit = std::min<std::int64_t>(rows, 64);
  while (unit / 2 % row_granularity() == 0 && blocks * ((rows + unit - 1) / unit) < std::int64_t{8} * threads)
    unit /= 2;
  return unit;
}

template <class F>
[[gnu::always_inline]] inline void on_activation(MlpActivation activation, F&& f) {
  switch (activation) {
    case MlpActivation::sigmoid:
      return f(
          [](float z) __attribute__((always_inline)) { return vector_sigmoid(z); },
          [](float a) __attribute__((always_inline)) { return a * (1 - a); });
    case MlpActivation::tanh:
      return f(
          [](float z) __attribute__((always_inline)) { return vector_tanh(z); },
          [](float a) __attribute__((always_inline)) { return (1 - a) * (1 + a); });
    case MlpActivation::relu:
      return f(
          [](float z) __attribute__((always_inline)) { return z > 0 ? z : 0.0f; },
          [](float a) __attribute__((always_inline)) { return a > 0 ? 1.0f : 0.0f; });
  }
}

}  // namespace

CpuMlp::CpuMlp(const MlpShape& shape, std::int64_t max_rows, const OptimizerOptions& rule,
               double label_smoothing, float pixel_scale, int max_threads, const MlpShards& shards)
    : shape_(shape),
      rule_(rule),
      label_smoothing_(label_smoothing),
      pixel_scale_(pixel_scale),
      shards_(shards),
      additions_(tree_additions(shards.count, shards.own, single_shards(shards.own))),
      nodes_(tree_cover(shards.count, shards.own)) {
  const std::int64_t rows = padded_rows(max_rows);
  row_losses_.resize(static_cast<std::size_t>(rows));
  row_correct_.resize(static_cast<std::size_t>(rows));
  const std::int64_t input_floats = padded(shape.sizes[0]) * row_stride(rows);
  own_inputs_ = input_floats <= max_own_floats && max_threads > max_sharing_threads;
  for (int i = 0; i < (own_inputs_ ? max_threads : 2); ++i) inputs_.push_back(zeroed(input_floats));
  const int copies = 1 + rule.state_count();
  std::int64_t summed = 0;
  for (std::size_t i = 0; i < shape.layers(); ++i) {
    Layer layer{.in = shape.sizes[i], .out = shape.sizes[i + 1]};
    const std::int64_t matrix = padded(layer.in) * padded(layer.out), vector = padded(layer.out);
    const std::int64_t values = vector * row_stride(rows);
    layer.memory = zeroed(copies * (matrix + vector) + 2 * values);
    float* free = layer.memory.data<float>();
    const auto take = [&free](std::int64_t floats) { return std::exchange(free, free + floats); };
    const auto take_parameter = [&](std::int64_t floats) {
      ParameterState taken{.value = take(floats)};
      if (copies > 1) taken.first = take(floats);
      if (copies > 2) taken.second = take(floats);
      return taken;
    };
    layer.weight = take_parameter(matrix);
    layer.bias = take_parameter(vector);
    layer.activation = take(values);
    layer.gradient = take(values);
    layer.summed_weight = std::exchange(summed, summed + matrix);
    layer.summed_bias = std::exchange(summed, summed + vector);
    if (i > 0) strip_floats_ = std::max(strip_floats_, vector * lanes);
    layers_.push_back(std::move(layer));
  }
  strips_ = zeroed(std::max<std::int64_t>(1, strip_floats_ * max_threads));
  shard_sums_ = zeroed(shards.own.count() * lanes * lanes * max_threads);
  if (shards.group)
    for (std::size_t node = 0; node < nodes_.size(); ++node) node_sums_.push_back(zeroed(summed));
}

// Calls f(offset in blocked layout, offset in the state dict's matrix) for every weight.
template <class F>
void CpuMlp::for_each_weight(const Layer& layer, F&& f) const {
  for (std::int64_t o = 0; o < layer.out; ++o)
    for (std::int64_t i = 0; i < layer.in; ++i)
      f((o / lanes * padded(layer.in) + i) * lanes + o % lanes, o * layer.in + i);
}

void CpuMlp::load(std::size_t index, const ParameterState& weight, const ParameterState& bias) {
  const Layer& layer = layers_[index];
  for (auto member : {&ParameterState::value, &ParameterState::first, &ParameterState::second}) {
    if (!(layer.weight.*member)) continue;
    for_each_weight(layer, [&](std::int64_t blocked, std::int64_t plain) {
      (layer.weight.*member)[blocked] = (weight.*member)[plain];
    });
    std::copy_n(bias.*member, layer.out, layer.bias.*member);
  }
}

void CpuMlp::store(std::size_t index, const ParameterState& weight, const ParameterState& bias) const {
  const Layer& layer = layers_[index];
  for (auto member : {&ParameterState::value, &ParameterState::first, &ParameterState::second}) {
    if (!(layer.weight.*member)) continue;
    for_each_weight(layer, [&](std::int64_t blocked, std::int64_t plain) {
      (weight.*member)[plain] = (layer.weight.*member)[blocked];
    });
    std::copy_n(layer.bias.*member, layer.out, bias.*member);
  }
}

void CpuMlp::load_batch(const TeamMember& member, const MlpBatch& batch, int parity) {
  const std::int64_t rows = padded_rows(batch.rows), stride = row_stride(rows), pixels = shape_.sizes[0];
  float* const input = input_of(member, parity);
  const float scale = pixel_scale_;
  const std::int64_t first = own_inputs_ ? 0 : member.begin(rows),
                     last = own_inputs_ ? rows : member.end(rows);
  for (std::int64_t row = first; row < last; ++row) {
    float* to = input + row * lanes;
    if (row >= batch.rows) {  // padding: results are not used, but stale values could be NaN or denormal
      for (std::int64_t block = 0; block < blocks_of(pixels); ++block, to += stride * lanes)
        std::fill_n(to, lanes, 0.0f);
      continue;
    }
    const std::uint8_t* const image = batch.images[row];
    std::int64_t pixel = 0;
    for (; pixel + lanes <= pixels; pixel += lanes, to += stride * lanes)
      for (std::int64_t i = 0; i < lanes; ++i) to[i] = static_cast<float>(image[pixel + i]) * scale;
    if (pixel == pixels) continue;
    // Padding pixels are set to 0, so that their weights stay 0.
    for (std::int64_t i = 0; i < lanes; ++i)
      to[i] = pixel + i < pixels ? static_cast<float>(image[pixel + i]) * scale : 0.0f;
  }
}

void CpuMlp::step(const TeamMember& member, const MlpBatch& batch, const MlpBatch* next, int parity,
                  const StepHyperparameters<float>& hyperparameters) {
  const std::int64_t rows = padded_rows(batch.rows);
  const float* const input = input_of(member, parity);
  const auto input_of_layer = [&](std::size_t layer) {
    return layer == 0 ? input : layers_[layer - 1].activation;
  };
  const std::size_t last = layers_.size() - 1;
  for (std::size_t i = 0; i < last; ++i) {
    forward(member, i, input_of_layer(i), rows);
    member.arrive_and_wait();
  }
  finish(member, input_of_layer(last), batch, rows);
  member.arrive_and_wait();
  for (std::size_t i = last; i-- > 1;) {
    backward(member, i, rows);
    member.arrive_and_wait();
  }
  if (next && !own_inputs_) load_batch(member, *next, 1 - parity);
  if (shards_.group) exchange(member, input, batch, rows);
  if (failed()) return;
  update(member, input, batch, rows, hyperparameters);
  if (next && own_inputs_) load_batch(member, *next, 1 - parity);
  if (member.index == 0) {
    loss_sum_ = 0;
    correct_ = 0;
    for (std::size_t row = 0; row < static_cast<std::size_t>(batch.rows); ++row) {
      loss_sum_ += shards_.count > 1 ? order_free(row_losses_[row]) : row_losses_[row];
      correct_ += row_correct_[row];
    }
  }
  member.arrive_and_wait();
}

// A hidden layer. Divided by blocks of outputs × groups of rows.
void CpuMlp::forward(const TeamMember& member, std::size_t index, const float* in, std::int64_t rows) {
  const Layer& layer = layers_[index];
  const std::int64_t unit_rows = rows_per_unit(rows, blocks_of(layer.out), member.count),
                     row_units = (rows + unit_rows - 1) / unit_rows;
  const std::int64_t blocks = blocks_of(layer.out), units = blocks * row_units;
  with_simd([&]<std::size_t bytes>() __attribute__((always_inline)) {
    for (std::int64_t unit = member.begin(units); unit < member.end(units); ++unit) {
      // With many rows, loop over rows outside: a group of rows is read from memory once for all blocks.
      const std::int64_t block = many_rows(rows) ? unit % blocks : unit / row_units;
      const std::int64_t first = (many_rows(rows) ? unit / blocks : unit % row_units) * unit_rows;
      const std::int64_t end = std::min(first + unit_rows, rows);
      float* const out = layer.activation + block * row_stride(rows) * lanes;
      multiply_block<bytes>(in, blocks_of(layer.in), row_stride(rows),
                            layer.weight.value + block * padded(layer.in) * lanes, out, first, end);
      const float* const bias = layer.bias.value + block * lanes;
      const std::int64_t valid = std::min(lanes, layer.out - block * lanes);
      on_activation(
          shape_.activation, [&](auto activate, auto) __attribute__((always_inline)) {
            for (std::int64_t row = first; row < end; ++row) {
              float* const values = out + row * lanes;
              for (std::int64_t i = 0; i < lanes; ++i) values[i] = activate(values[i] + bias[i]);
              // Padding outputs stay 0, so that their weights do too.
              for (std::int64_t i = valid; i < lanes; ++i) values[i] = 0;
            }
          });
    }
  });
}

// Transposes the weights of 16 inputs of a layer into this member's strip, as [output][16].
const float* CpuMlp::strip_of(const TeamMember& member, const Layer& layer, std::int64_t input_block) const {
  float* const strip = strips_.data<float>() + member.index * strip_floats_;
  for (std::int64_t block = 0; block < blocks_of(layer.out); ++block) {
    const float* const from = layer.weight.value + (block * padded(layer.in) + input_block * lanes) * lanes;
    float* const to = strip + block * lanes * lanes;
    for (std::int64_t i = 0; i < lanes; ++i)
      for (std::int64_t o = 0; o < lanes; ++o) to[o * lanes + i] = from[i * lanes + o];
  }
  return strip;
}

// The last layer, the loss, and the gradient of the layer before it. Divided by rows.
void CpuMlp::finish(const TeamMember& member, const float* in, const MlpBatch& batch, std::int64_t rows) {
  const Layer& layer = layers_.back();
  const RowPart own = own_rows(member, rows);
  if (own.begin == own.end) return;
  with_simd([&]<std::size_t bytes>() __attribute__((always_inline)) {
    for (std::int64_t block = 0; block < blocks_of(layer.out); ++block)
      multiply_block<bytes>(in, blocks_of(layer.in), row_stride(rows),
                            layer.weight.value + block * padded(layer.in) * lanes,
                            layer.activation + block * row_stride(rows) * lanes, own.begin, own.end);
  });
  for (std::int64_t row = own.begin; row < own.end; ++row) row_gradient(row, rows, batch);
  if (layers_.size() == 1) return;
  const Layer& before = layers_[layers_.size() - 2];
  for (std::int64_t block = 0; block < blocks_of(layer.in); ++block) {
    const float* const strip = strip_of(member, layer, block);
    float* const out = before.gradient + block * row_stride(rows) * lanes;
    const float* const activation = before.activation + block * row_stride(rows) * lanes;
    with_simd([&]<std::size_t bytes>() __attribute__((always_inline)) {
      multiply_block<bytes>(layer.gradient, blocks_of(layer.out), row_stride(rows), strip, out, own.begin,
                            own.end);
      on_activation(
          shape_.activation, [&](auto, auto slope) __attribute__((always_inline)) {
            for (std::int64_t i = own.begin * lanes; i < own.end * lanes; ++i) out[i] *= slope(activation[i]);
          });
    });
  }
}

// The loss of one row and the gradient of its logits.
void CpuMlp::row_gradient(std::int64_t row, std::int64_t rows, const MlpBatch& batch) {
  const Layer& layer = layers_.back();
  const auto at = [&](float* memory, std::int64_t c) -> float& {
    return memory[(c / lanes * row_stride(rows) + row) * lanes + c % lanes];
  };
  for (std::int64_t c = 0; c < padded(layer.out); ++c) at(layer.gradient, c) = 0;
  if (row >= batch.rows) return;
  const std::int64_t classes = layer.out;
  const auto label = static_cast<std::int64_t>(batch.labels[row]);
  float max_logit = -std::numeric_limits<float>::infinity();
  std::int64_t best = 0;
  for (std::int64_t c = 0; c < classes; ++c) {
    const float logit = at(layer.activation, c) += layer.bias.value[c];
    if (logit > max_logit) {
      max_logit = logit;
      best = c;
    }
  }
  row_correct_[static_cast<std::size_t>(row)] = best == label;
  const auto n = static_cast<float>(batch.batch_rows);
  double& loss = row_losses_[static_cast<std::size_t>(row)];
  if (shape_.loss == LossKind::mse) {
    const float scale = 2 / (n * static_cast<float>(classes));
    float sum = 0;
    for (std::int64_t c = 0; c < classes; ++c) {
      const float y = vector_sigmoid(at(layer.activation, c)), difference = y - (c == label ? 1.0f : 0.0f);
      sum += difference * difference;
      at(layer.gradient, c) = scale * difference * y * (1 - y);
    }
    loss = static_cast<double>(sum) / static_cast<double>(classes);
    return;
  }
  float sum = 0, logits = 0;
  for (std::int64_t c = 0; c < classes; ++c) {
    const float shifted = at(layer.activation, c) - max_logit;
    logits += shifted;
    sum += at(layer.gradient, c) = vector_exp(shifted);
  }
  const auto smoothing = static_cast<float>(label_smoothing_);
  const float uniform = smoothing / static_cast<float>(classes), own = 1 - smoothing;
  loss = std::log(static_cast<double>(sum)) -
         static_cast<double>(own * (at(layer.activation, label) - max_logit) + uniform * logits);
  for (std::int64_t c = 0; c < classes; ++c) {
    float& gradient = at(layer.gradient, c);
    gradient = (gradient / sum - uniform - (c == label ? own : 0.0f)) / n;
  }
}

// The gradient of the layer before layer `index`. Divided by blocks of its outputs × groups of rows.
void CpuMlp::backward(const TeamMember& member, std::size_t index, std::int64_t rows) {
  const Layer &layer = layers_[index], &before = layers_[index - 1];
  const std::int64_t unit_rows = rows_per_unit(rows, blocks_of(layer.in), member.count),
                     row_units = (rows + unit_rows - 1) / unit_rows;
  const std::int64_t units = blocks_of(layer.in) * row_units;
  std::int64_t strip_block = -1;
  const float* strip = nullptr;
  for (std::int64_t unit = member.begin(units); unit < member.end(units); ++unit) {
    const std::int64_t block = unit / row_units, first = unit % row_units * unit_rows;
    const std::int64_t end = std::min(first + unit_rows, rows);
    if (strip_block != block) strip = strip_of(member, layer, strip_block = block);
    float* const out = before.gradient + block * row_stride(rows) * lanes;
    const float* const activation = before.activation + block * row_stride(rows) * lanes;
    with_simd([&]<std::size_t bytes>() __attribute__((always_inline)) {
      multiply_block<bytes>(layer.gradient, blocks_of(layer.out), row_stride(rows), strip, out, first, end);
      on_activation(
          shape_.activation, [&](auto, auto slope) __attribute__((always_inline)) {
            for (std::int64_t i = first * lanes; i < end * lanes; ++i) out[i] *= slope(activation[i]);
          });
    });
  }
}

// Sums over the rows of a batch: f(first row, number of rows, sums) sums over those of a shard. Returns
// `size` sums, in memory of this member: those of the first node, and those of the node that begins with own
// shard i are 256 · i further on.
template <class F>
[[gnu::always_inline]] inline const float* CpuMlp::sum_rows(const TeamMember& member, const MlpBatch& batch,
                                                            std::int64_t size, const F& f) const {
  const auto& [shards, own, group] = shards_;
  float* const sums = shard_sums_.data<float>() + member.index * own.count() * lanes * lanes;
  if (shards == 1) {
    f(0, batch.rows, sums);
    return sums;
  }
  const auto slot = [&](std::int64_t index) { return sums + index * lanes * lanes; };
  const std::int64_t first = rows_of_shards(batch.batch_rows, shards, own).begin;
  for (std::int64_t shard = own.begin; shard < own.end; ++shard) {
    const IndexRange rows = rows_of_shards(batch.batch_rows, shards, {shard, shard + 1});
    f(rows.begin - first, rows.count(), slot(shard - own.begin));
  }
  for (const TreeAddition& addition : additions_)
    for (std::int64_t i = 0; i < size; ++i) slot(addition.to)[i] += slot(addition.from)[i];
  return sums;
}

// f(layer, block of outputs, block of inputs) for this member's part of the blocks of 16 × 16 weights, in
// memory order.
template <class F>
[[gnu::always_inline]] inline void CpuMlp::for_each_block(const TeamMember& member, std::int64_t rows,
                                                          const F& f) {
  for (std::size_t index = 0; index < layers_.size(); ++index) {
    const std::int64_t input_blocks = blocks_of(layers_[index].in), blocks = blocks_of(layers_[index].out);
    // Whole blocks of outputs per thread, or any part of them.
    const std::int64_t step = keep_blocks(rows, blocks, member.count) ? input_blocks : 1;
    const std::int64_t units = blocks * input_blocks;
    for (std::int64_t unit = member.begin(units / step) * step; unit < member.end(units / step) * step;
         ++unit)
      f(index, many_rows(rows) ? unit % blocks : unit / input_blocks,
        many_rows(rows) ? unit / blocks : unit % input_blocks);
  }
}

template <std::size_t bytes>
[[gnu::always_inline]] inline const float* CpuMlp::weight_gradient(const TeamMember& member,
                                                                   const float* input, const MlpBatch& batch,
                                                                   std::size_t index, std::int64_t out_block,
                                                                   std::int64_t in_block) const {
  const std::int64_t stride = row_stride(padded_rows(batch.rows));
  const float* const in = (index == 0 ? input : layers_[index - 1].activation) + in_block * stride * lanes;
  const float* const gradient = layers_[index].gradient + out_block * stride * lanes;
  return sum_rows(
      member, batch,
      lanes * lanes, [&](std::int64_t row, std::int64_t count, float* to) __attribute__((always_inline)) {
        gradient_block<bytes>(in + row * lanes, gradient + row * lanes, count, to);
      });
}

[[gnu::always_inline]] inline const float* CpuMlp::bias_gradient(const TeamMember& member,
                                                                 const MlpBatch& batch, std::size_t index,
                                                                 std::int64_t out_block) const {
  const std::int64_t stride = row_stride(padded_rows(batch.rows));
  const float* const gradient = layers_[index].gradient + out_block * stride * lanes;
  return sum_rows(
      member, batch,
      lanes, [&](std::int64_t row, std::int64_t count, float* to) __attribute__((always_inline)) {
        for (std::int64_t o = 0; o < lanes; ++o) {
          float sum = 0;
          for (std::int64_t r = row; r < row + count; ++r) sum += gradient[r * lanes + o];
          to[o] = sum;
        }
      });
}

// Writes the gradients of the own shards to node_sums_ and sums them with those of the other ranks, into the
// first.
void CpuMlp::exchange(const TeamMember& member, const float* input, const MlpBatch& batch,
                      std::int64_t rows) {
  const auto keep = [&](const float* sums, std::int64_t at, std::int64_t size) {
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      std::copy_n(sums + (nodes_[i].begin - shards_.own.begin) * lanes * lanes, size,
                  node_sums_[i].data<float>() + at);
  };
  with_simd([&]<std::size_t bytes>() __attribute__((always_inline)) {
    for_each_block(
        member, rows,
        [&](std::size_t index, std::int64_t out_block, std::int64_t in_block) __attribute__((always_inline)) {
          const Layer& layer = layers_[index];
          keep(weight_gradient<bytes>(member, input, batch, index, out_block, in_block),
               layer.summed_weight + (out_block * blocks_of(layer.in) + in_block) * lanes * lanes,
               lanes * lanes);
          if (in_block == 0)
            keep(bias_gradient(member, batch, index, out_block), layer.summed_bias + out_block * lanes,
                 lanes);
        });
  });
  member.arrive_and_wait();
  if (member.index == 0) {
    try {
      shards_.group->reduce({shards_.count, node_sums_}, node_sums_.front()).wait();
    } catch (...) {
      failure_ = std::current_exception();
    }
  }
  member.arrive_and_wait();
}

// Updates all weights with their gradients.
void CpuMlp::update(const TeamMember& member, const float* input, const MlpBatch& batch, std::int64_t rows,
                    const StepHyperparameters<float>& hyperparameters) {
  const float* const summed = node_sums_.empty() ? nullptr : node_sums_.front().data<float>();
  const auto shifted = [](float* memory, std::int64_t offset) { return memory ? memory + offset : nullptr; };
  on_update_rule(rule_, [&](auto rule) {
    with_simd([&]<std::size_t bytes>() __attribute__((always_inline)) {
      for_each_block(
          member, rows,
          [&](std::size_t index, std::int64_t out_block, std::int64_t in_block)
              __attribute__((always_inline)) {
                const Layer& layer = layers_[index];
                const std::int64_t at = (out_block * blocks_of(layer.in) + in_block) * lanes * lanes;
                const float* sums =
                    summed ? summed + layer.summed_weight + at
                           : weight_gradient<bytes>(member, input, batch, index, out_block, in_block);
                update_block<bytes>(sums, layer.weight.value + at, shifted(layer.weight.first, at),
                                    shifted(layer.weight.second, at), rule, hyperparameters);
                if (in_block != 0) return;
                sums = summed ? summed + layer.summed_bias + out_block * lanes
                              : bias_gradient(member, batch, index, out_block);
                for (std::int64_t o = out_block * lanes; o < (out_block + 1) * lanes; ++o) {
                  float unused = 0;
                  rule(layer.bias.value[o], sums[o % lanes], layer.bias.first ? layer.bias.first[o] : unused,
                       layer.bias.second ? layer.bias.second[o] : unused, hyperparameters);
                }
              });
    });
  });
}

}  // namespace tandem
