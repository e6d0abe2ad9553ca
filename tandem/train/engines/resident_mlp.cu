#include <algorithm>

#include "tandem/core/error.h"
#include "tandem/device/cuda.h"
#include "tandem/train/engines/resident_block.cuh"
#include "tandem/train/engines/resident_mlp.h"

namespace tandem::detail {
namespace {

using namespace resident;

// The four phases of a step, as one thread block computes them.
struct StepPhases : Block {
  // 1. Partial sums of the group's neurons: `Parts` adjacent lanes share a row, each processes every Parts-th
  // word, and at the end each has 16 / Parts of the row's neurons.
  template <int Parts, int Rows>
  __device__ void partial_sums(const std::uint32_t* x) const {
    const auto* const w = reinterpret_cast<const float4*>(part(layout.weight1));
    const int stride = pixel_stride(plan), words = plan.slice_words;
    const int lane = threadIdx.x % Parts;
    constexpr int rows_at_once = threads / Parts * Rows;
    float* const out = run.exchange + partial_sums_offset(plan, group, slice);
    for (int base = 0; base < rows; base += rows_at_once) {
      const int row = base + threadIdx.x / Parts;
      int at[Rows];
#pragma unroll
      for (int r = 0; r < Rows; ++r) at[r] = min(row + r * (threads / Parts), plan.batch - 1) * stride;
      float sum[Rows][neurons] = {};
      const auto add_word = [&](const std::uint32_t(&x4)[Rows], int word) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          float pixel[Rows];
#pragma unroll
          for (int r = 0; r < Rows; ++r) pixel[r] = to_float(x4[r], j);
#pragma unroll
          for (int q = 0; q < 4; ++q) {
            const float4 weight = w[(j * 4 + q) * words + word];
#pragma unroll
            for (int r = 0; r < Rows; ++r) {
              sum[r][4 * q + 0] += pixel[r] * weight.x;
              sum[r][4 * q + 1] += pixel[r] * weight.y;
              sum[r][4 * q + 2] += pixel[r] * weight.z;
              sum[r][4 * q + 3] += pixel[r] * weight.w;
            }
          }
        }
      };
      if constexpr (Parts > 1) {
        for (int word = lane; word < words; word += Parts) {
          const std::uint32_t x4[Rows] = {x[at[0] + word]};
          add_word(x4, word);
        }
      } else {
        for (int word = 0; word < words; word += 4) {
          uint4 x16[Rows];
#pragma unroll
          for (int r = 0; r < Rows; ++r) x16[r] = *reinterpret_cast<const uint4*>(x + at[r] + word);
#pragma unroll
          for (int piece = 0; piece < 4; ++piece) {
            std::uint32_t x4[Rows];
#pragma unroll
            for (int r = 0; r < Rows; ++r)
              x4[r] = piece == 0 ? x16[r].x : piece == 1 ? x16[r].y : piece == 2 ? x16[r].z : x16[r].w;
            add_word(x4, word + piece);
          }
        }
      }
#pragma unroll
      for (int r = 0; r < Rows; ++r) {
        const int first = share_neurons<Parts / 2, neurons / 2>(sum[r], lane);
        const int target = row + r * (threads / Parts);
        if (target < rows) store_neurons<neurons / Parts>(out + target * neurons + first, sum[r]);
      }
    }
  }

  // Reduces over 2 · Bit lanes: each lane sends half of its neurons to its partner and keeps the other half,
  // recursively. Returns the index of the first neuron it ends with.
  template <int Bit, int Half>
  __device__ static int share_neurons(float* sum, int lane) {
    if constexpr (Bit == 0) {
      return 0;
    } else {
      const bool upper = (lane & Bit) != 0;
#pragma unroll
      for (int i = 0; i < Half; ++i) {
        const float give = upper ? sum[i] : sum[i + Half];
        const float keep = upper ? sum[i + Half] : sum[i];
        sum[i] = keep + __shfl_xor_sync(0xffffffffu, give, Bit);
      }
      return (upper ? Half : 0) + share_neurons<Bit / 2, Half / 2>(sum, lane);
    }
  }

  template <int Count>
  __device__ void store_neurons(float* to, const float* sum) const {
    if constexpr (Count >= 4) {
#pragma unroll
      for (int i = 0; i < Count; i += 4)
        *reinterpret_cast<float4*>(to + i) = make_float4(sum[i] * run.scale, sum[i + 1] * run.scale,
                                                         sum[i + 2] * run.scale, sum[i + 3] * run.scale);
    } else {
#pragma unroll
      for (int i = 0; i < Count; ++i) to[i] = sum[i] * run.scale;
    }
  }

  __device__ void forward(int buffer) const {
    const std::uint32_t* const x = pixels(buffer);
    if (rows <= threads / 16) return partial_sums<16, 1>(x);
    if (rows <= threads / 8) return partial_sums<8, 1>(x);
    if (rows <= threads / 4) return partial_sums<4, 1>(x);
    if (rows <= threads / 2) return partial_sums<2, 1>(x);
    if (rows <= threads) return partial_sums<1, 1>(x);
    if (rows <= 2 * threads) return partial_sums<1, 2>(x);
    return partial_sums<1, 4>(x);
  }

  // 2. For the block's own rows: the hidden layer, then this group's part of the logits.
  __device__ void hidden_and_logits(int parity) const {
    float* const hidden = part(layout.hidden);
    const float* const bias = part(layout.bias1);
    const int own = row_end - row_begin;
    const float* const sums = run.exchange + partial_sums_offset(plan, group, 0) + row_begin * neurons;
    const std::size_t between = partial_sums_offset(plan, 0, 1);
    for (int i = threadIdx.x; i < own * neurons / 4; i += threads) {
      const int neuron = i % (neurons / 4) * 4, remaining = plan.hidden - group * neurons - neuron;
      float4 z = *reinterpret_cast<const float4*>(bias + neuron);
      float4 more[max_slices];
#pragma unroll
      for (int s = 0; s < max_slices; ++s)
        more[s] = __ldcg(reinterpret_cast<const float4*>(sums + min(s, plan.slices - 1) * between) + i);
#pragma unroll
      for (int s = 0; s < max_slices; ++s) {
        const float in_use = s < plan.slices ? 1.0f : 0.0f;  // no branches, so that all loads are in flight
        z = make_float4(z.x + in_use * more[s].x, z.y + in_use * more[s].y, z.z + in_use * more[s].z,
                        z.w + in_use * more[s].w);
      }
      // Padding neurons stay 0, whatever the activation of 0 is.
      reinterpret_cast<float4*>(hidden)[i] = make_float4(remaining > 0 ? activated(run.activation, z.x) : 0,
                                                         remaining > 1 ? activated(run.activation, z.y) : 0,
                                                         remaining > 2 ? activated(run.activation, z.z) : 0,
                                                         remaining > 3 ? activated(run.activation, z.w) : 0);
    }
    __syncthreads();
    const float* const weight = part(layout.weight2);
    float* const out = run.exchange + logits_offset(plan, parity, group) + row_begin * plan.classes;
    for (int i = threadIdx.x; i < own * plan.classes; i += threads) {
      const int row = i / plan.classes, c = i - row * plan.classes;
      float sum = 0;
#pragma unroll
      for (int h = 0; h < neurons; ++h) sum += hidden[row * neurons + h] * weight[h * plan.classes + c];
      out[i] = sum;
    }
  }

  // 3. For the block's own rows: the loss and the gradients of the logits and the hidden layer.
  __device__ void backward(int parity, double& loss_sum, int& correct) const {
    float* const outputs = part(layout.outputs);
    const float* const hidden = part(layout.hidden);
    const float* const weight = part(layout.weight2);
    const int own = row_end - row_begin, classes = plan.classes;
    const float* const partial = run.exchange + logits_offset(plan, parity, 0) + row_begin * classes;
    const std::size_t between = logits_offset(plan, 0, 1) - logits_offset(plan, 0, 0);
#pragma unroll 2
    for (int i = threadIdx.x; i < own * classes; i += threads) {
      float sum = part(layout.bias2)[i % classes];
      for (int base = 0; base < plan.groups; base += 16) {
        float more[16];
#pragma unroll
        for (int g = 0; g < 16; ++g) more[g] = __ldcg(partial + min(base + g, plan.groups - 1) * between + i);
#pragma unroll
        for (int g = 0; g < 16; ++g) sum += base + g < plan.groups ? more[g] : 0;
      }
      outputs[i] = sum;
    }
    __syncthreads();
    for (int row = threadIdx.x; row < own; row += threads)
      row_gradient(outputs + row * classes, labels(parity)[row], loss_sum, correct);
    __syncthreads();
    float* const gradients = run.exchange + hidden_gradients_offset(plan, group) + row_begin * neurons;
    for (int i = threadIdx.x; i < own * neurons; i += threads) {
      const int row = i / neurons, h = i % neurons;
      float sum = 0;
      for (int c = 0; c < classes; ++c) sum += outputs[row * classes + c] * weight[h * classes + c];
      sum *= activation_slope(run.activation, hidden[i]);
      part(layout.back)[i] = gradients[i] = sum;
    }
    __syncthreads();
    small_gradients(outputs, hidden, own);
  }

  // Turns logits into the gradient of the loss with respect to them.
  __device__ void row_gradient(float* row, int label, double& loss_sum, int& correct) const {
    constexpr int max_classes = ResidentPlan::max_classes;
    const int classes = plan.classes;
    const float infinity = __int_as_float(0x7f800000);
    float z[max_classes];
#pragma unroll
    for (int c = 0; c < max_classes; ++c) z[c] = c < classes ? row[c] : -infinity;
    float max_logit = z[0];
#pragma unroll
    for (int c = 1; c < max_classes; ++c) max_logit = fmaxf(max_logit, z[c]);
    const float label_logit = row[label];
    correct += label_logit == max_logit;  // a tie counts as correct
    if (run.loss == LossKind::cross_entropy) {
      float sum = 0;
#pragma unroll
      for (int c = 0; c < max_classes; ++c) z[c] = __expf(z[c] - max_logit);
#pragma unroll
      for (int c = 0; c < max_classes; ++c) sum += z[c];
      loss_sum += exact_addend(__logf(sum) + max_logit - label_logit);
      const float weight = __fdividef(1, static_cast<float>(rows)), scale = __fdividef(weight, sum);
#pragma unroll
      for (int c = 0; c < max_classes; ++c)
        if (c < classes) row[c] = z[c] * scale - (c == label ? weight : 0.0f);
    } else {
      const float scale = 2 / static_cast<float>(rows * classes);
      float sum = 0;
#pragma unroll
      for (int c = 0; c < max_classes; ++c)
        if (c < classes) {
          const float y = 1 / (1 + __expf(-z[c])), difference = y - (c == label ? 1.0f : 0.0f);
          sum += difference * difference;
          row[c] = scale * difference * y * (1 - y);
        }
      loss_sum += exact_addend(sum / static_cast<float>(classes));
    }
  }

  // The own rows' contribution to the gradients of the second layer and of both biases, in `small_parts`
  // parts.
  __device__ void small_gradients(const float* outputs, const float* hidden, int own) const {
    const int classes = plan.classes, products = neurons * classes, count = small_gradient_floats(plan);
    const float* const back = part(layout.back);
    float* const out = run.exchange + small_gradients_offset(plan, group, slice);
    const int share = (own + small_parts - 1) / small_parts;
    for (int i = threadIdx.x; i < count * small_parts; i += threads) {
      const int which = i / count, item = i - which * count;
      const int begin = which * share, end = min(begin + share, own);
      float sum = 0;
      if (item < products) {
        const float* const a = hidden + item / classes;
        const float* const b = outputs + item % classes;
#pragma unroll 4
        for (int row = begin; row < end; ++row) sum += a[row * neurons] * b[row * classes];
      } else if (item < products + neurons) {
#pragma unroll 4
        for (int row = begin; row < end; ++row) sum += back[row * neurons + item - products];
      } else {
#pragma unroll 4
        for (int row = begin; row < end; ++row) sum += outputs[row * classes + item - products - neurons];
      }
      out[i] = sum;
    }
  }

  // 4. The gradient of this block's part of the matrix, and the update of all its parameters.
  __device__ void update_weights(int buffer) const {
    const auto& hyperparameters =
        *reinterpret_cast<const StepHyperparameters<float>*>(part(hyperparameters_offset(buffer)));
    const float* const gradients = run.exchange + hidden_gradients_offset(plan, group);
    float* const stage = part(layout.gradients);
    const auto fetch_stage = [&](int base) {
      const int count = min(stage_rows, rows - base) * neurons / 4;
      for (int i = threadIdx.x; i < count; i += threads)
        __pipeline_memcpy_async(stage + 4 * i, gradients + base * neurons + 4 * i, 16);
      __pipeline_commit();
    };
    const float* const small = run.exchange + small_gradients_offset(plan, group, 0);
    for (int i = 4 * threadIdx.x; i < plan.slices * small_parts * small_gradient_floats(plan);
         i += 4 * threads)
      __pipeline_memcpy_async(part(layout.small) + i, small + i, 16);
    fetch_stage(0);

    const std::uint32_t* const x = pixels(buffer);
    const int words = plan.slice_words, stride = pixel_stride(plan);
    const int parts = min(row_parts(plan), (rows + 3) / 4);
    float sum[4][neurons] = {};
    for (int base = 0; base < rows; base += stage_rows) {
      if (base > 0) {
        __syncthreads();
        fetch_stage(base);
      }
      __pipeline_wait_prior(0);
      __syncthreads();
      if (my_part >= parts) continue;
      const int count = min(stage_rows, rows - base);
#pragma unroll 2
      for (int row = my_part; row < count; row += parts) {
        const std::uint32_t x4 = x[(base + row) * stride + my_word];
        const auto* const g4 = reinterpret_cast<const float4*>(stage) + row * 4;
        const float4 g[4] = {g4[0], g4[1], g4[2], g4[3]};
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const float pixel = to_float(x4, j);
#pragma unroll
          for (int q = 0; q < 4; ++q) {
            sum[j][4 * q + 0] += pixel * g[q].x;
            sum[j][4 * q + 1] += pixel * g[q].y;
            sum[j][4 * q + 2] += pixel * g[q].z;
            sum[j][4 * q + 3] += pixel * g[q].w;
          }
        }
      }
    }
    __syncthreads();  // all pixels have been read: partial gradients overwrite them
    float* const partial = buffer_memory(buffer);
    const int matrix = words * 4 * neurons;
    if (my_part < parts) {
      auto* const slot = reinterpret_cast<float4*>(partial + my_part * matrix) + my_word;
#pragma unroll
      for (int j = 0; j < 4; ++j)
#pragma unroll
        for (int q = 0; q < 4; ++q)
          slot[(j * 4 + q) * words] =
              make_float4(sum[j][4 * q], sum[j][4 * q + 1], sum[j][4 * q + 2], sum[j][4 * q + 3]);
    }
    __syncthreads();
    update_small(hyperparameters);
    for (int i = 4 * threadIdx.x; i < matrix; i += 4 * threads) {
      float4 g = make_float4(0, 0, 0, 0);
#pragma unroll 4
      for (int p = 0; p < parts; ++p) {
        const float4 more = *reinterpret_cast<const float4*>(partial + p * matrix + i);
        g = make_float4(g.x + more.x, g.y + more.y, g.z + more.z, g.w + more.w);
      }
      const float gradient[4] = {g.x * run.scale, g.y * run.scale, g.z * run.scale, g.w * run.scale};
      on_update_rule(run.rule, [&](auto rule) {
#pragma unroll
        for (int k = i; k < i + 4; ++k)
          rule(part(layout.weight1)[k], gradient[k - i], part(layout.first1)[k], part(layout.second1)[k],
               hyperparameters);
      });
    }
    __syncthreads();
  }

  // The second layer and the biases, of which all blocks of a group have identical copies.
  __device__ void update_small(const StepHyperparameters<float>& hyperparameters) const {
    const int classes = plan.classes, products = neurons * classes, count = small_gradient_floats(plan);
    const float* const small = part(layout.small);
    for (int i = threadIdx.x; i < products + neurons + classes; i += threads) {
      float sum = 0;
#pragma unroll 4
      for (int p = 0; p < plan.slices * small_parts; ++p) sum += small[p * count + i];
      if (i < products)
        update(run.rule, hyperparameters, sum, part(layout.weight2)[i], part(layout.first2)[i],
               part(layout.second2)[i]);
      else if (i < products + neurons)
        update_bias(hyperparameters, sum, part(layout.bias1) + i - products, neurons);
      else
        update_bias(hyperparameters, sum, part(layout.bias2) + i - products - neurons, classes);
    }
  }

  __device__ void update_bias(const StepHyperparameters<float>& hyperparameters, float gradient, float* bias,
                              int count) const {
    update(run.rule, hyperparameters, gradient, bias[0], bias[count], bias[2 * count]);
  }
};

__global__ __launch_bounds__(threads, 1) void resident_training(const __grid_constant__ ResidentPlan plan,
                                                                const __grid_constant__ ResidentRun run,
                                                                const __grid_constant__ SharedLayout layout) {
  extern __shared__ float4 memory[];
  StepPhases block{{.plan = plan,
                    .run = run,
                    .layout = layout,
                    .shared = reinterpret_cast<float*>(memory),
                    .group = static_cast<int>(blockIdx.x) / plan.slices,
                    .slice = static_cast<int>(blockIdx.x) % plan.slices,
                    .my_word = static_cast<int>(threadIdx.x) % plan.slice_words,
                    .my_part = static_cast<int>(threadIdx.x) / plan.slice_words,
                    .rows = 0,
                    .row_begin = 0,
                    .row_end = 0}};
  // 32 words, one cache line, per counter.
  Barrier group{.counter = run.counters + block.group * 32, .members = static_cast<unsigned>(plan.slices)};
  Barrier column{.counter = run.counters + (plan.groups + block.slice) * 32,
                 .members = static_cast<unsigned>(plan.groups)};
  double loss_sum = 0;
  int correct = 0;
  block.load();
  block.fetch_samples(0);
  block.fetch_samples(1);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  block.fetch(0);
  __pipeline_commit();
#pragma unroll 1
  for (std::int64_t step = 0; step < run.steps; ++step) {
    const int parity = static_cast<int>(step % 2);
    block.begin_step(step);
    __pipeline_wait_prior(0);
    __syncthreads();
    block.forward(parity);
    group.arrive();
    block.fetch(step + 1);
    block.fetch_samples(step + 2);
    __pipeline_commit();
    group.wait();
    block.hidden_and_logits(parity);
    column.arrive();
    column.wait();
    block.backward(parity, loss_sum, correct);
    group.arrive();
    group.wait();
    block.update_weights(parity);
  }
  block.store();
  if (block.group != 0) return;
  // One thread adds the sums in order of threads, so that the result is reproducible.
  __syncthreads();
  auto* const losses = reinterpret_cast<double*>(memory);
  auto* const correct_counts = reinterpret_cast<int*>(losses + threads);
  losses[threadIdx.x] = loss_sum;
  correct_counts[threadIdx.x] = correct;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int i = 1; i < threads; ++i) {
    loss_sum += losses[i];
    correct += correct_counts[i];
  }
  run.loss_sums[block.slice] += loss_sum;
  run.correct[block.slice] += correct;
}

}  // namespace

std::size_t ResidentPlan::exchange_floats() const {
  return small_gradients_offset(*this, groups, 0);
}

ResidentLimits resident_limits(Device device) {
  int shared = 0;
  cuda_check(cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, device.index),
             "cudaDeviceGetAttribute");
  return {.blocks = multiprocessor_count(device), .shared_bytes = static_cast<std::size_t>(shared)};
}

ResidentPlan plan_resident(int inputs, int hidden, int classes, int batch, int states,
                           const ResidentLimits& limits) {
  if (inputs % 16 != 0 || classes > ResidentPlan::max_classes) return {};
  ResidentPlan plan{.inputs = inputs, .hidden = hidden, .classes = classes, .batch = batch};
  plan.groups = (hidden + neurons - 1) / neurons;
  const int slices = min(limits.blocks / plan.groups, max_slices);
  if (slices < 1) return {};
  plan.slice_words = (inputs / 16 + slices - 1) / slices * 4;
  plan.slices = (inputs / 4 + plan.slice_words - 1) / plan.slice_words;
  if (plan.slice_words > threads) return {};  // phase 4 needs at least one thread per word
  plan.shared_bytes = static_cast<std::size_t>(shared_layout(plan, states).total) * sizeof(float);
  return plan.shared_bytes <= limits.shared_bytes ? plan : ResidentPlan{};
}

void run_resident(const ResidentPlan& plan, const ResidentRun& run, StreamView stream) {
  expect(plan.groups > 0 && run.steps > 0);
  cuda_check(cudaFuncSetAttribute(resident_training, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(plan.shared_bytes)),
             "cudaFuncSetAttribute");
  SharedLayout layout = shared_layout(plan, run.rule.state_count());
  void* arguments[] = {const_cast<ResidentPlan*>(&plan), const_cast<ResidentRun*>(&run), &layout};
  cuda_check(cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(resident_training),
                                         dim3(static_cast<unsigned>(plan.blocks())), dim3(threads), arguments,
                                         plan.shared_bytes, cuda_stream(stream)),
             "resident_training");
}

}  // namespace tandem::detail
