#include "tandem/optim/lars.h"

#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "tandem/core/check.h"
#include "tandem/core/on_dtype.h"
#include "tandem/core/parallel.h"
#include "tandem/device/on_backend.h"
#include "tandem/ops/fill.h"
#include "tandem/optim/lars_kernel.h"
#include "tandem/optim/sum_of_squares.h"

namespace tandem::detail {
namespace {

// Sums the squares of one chunk, `index` of all, if its slot is adapted and has a gradient.
template <class T>
void sum_chunk(const UpdateTable& table, const LarsWorkspace& workspace,
               std::span<const std::byte* const> gradients, std::int64_t index) {
  const auto [slot, begin, count] = chunk_at(table, index);
  if (!gradients[slot] || !workspace.is_adapted.data<std::uint8_t>()[slot]) return;
  double* const sums = workspace.square_sums.data<double>() + 2 * index;
  sums[0] = sum_of_squares(reinterpret_cast<const T*>(table.slots[slot].weight) + begin, count);
  sums[1] = sum_of_squares(reinterpret_cast<const T*>(gradients[slot]) + begin, count);
}

template <class T>
StepHyperparameters<T> slot_hyperparameters(const UpdateTable& table, const LarsWorkspace& workspace,
                                            std::size_t slot, StepHyperparameters<T> values) {
  if (!workspace.is_adapted.data<std::uint8_t>()[slot]) {
    values.decay = 0;
    return values;
  }
  double weight_square = 0, gradient_square = 0;
  const double* const sums = workspace.square_sums.data<double>();
  for (std::int64_t chunk = table.first_chunk[slot]; chunk < table.first_chunk[slot + 1]; ++chunk) {
    weight_square += sums[2 * chunk];
    gradient_square += sums[2 * chunk + 1];
  }
  return adapted(values, workspace.trust_coefficient, weight_square, gradient_square);
}

LarsWorkspace make_workspace(const NamedTensors& parameters, const UpdateTable& table,
                             double trust_coefficient) {
  const Tensor& first = parameters.front().tensor;
  const auto slots = static_cast<std::int64_t>(parameters.size());
  std::vector<std::uint8_t> is_adapted;
  for (const auto& [name, tensor] : parameters) is_adapted.push_back(tensor.rank() >= 2 ? 1 : 0);
  return {
      .trust_coefficient = trust_coefficient,
      .is_adapted = Tensor::from(is_adapted, {slots}, first.device()),
      .first_chunk = Tensor::from(table.first_chunk, {slots + 1}, first.device()),
      .square_sums = zeros({table.first_chunk.back(), 2}, DType::f64, first.device()),
      .hyperparameters = Tensor::empty({slots, step_hyperparameter_count}, first.dtype(), first.device())};
}

}  // namespace

template <>
void lars_rates_kernel<Backend::cpu>(DType dtype, const UpdateTable& table, const LarsWorkspace& workspace,
                                     std::span<const std::byte* const> gradients,
                                     const std::byte* hyperparameters, StreamView) {
  on_dtype(TypeList<float, double>{}, dtype, "lars", [&]<class T>() {
    parallel_for(table.first_chunk.back(), 8, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t index = begin; index < end; ++index) sum_chunk<T>(table, workspace, gradients, index);
    });
    StepHyperparameters<T> of_step;
    std::memcpy(&of_step, hyperparameters, sizeof(of_step));
    for (std::size_t slot = 0; slot < table.slots.size(); ++slot) {
      if (!gradients[slot]) continue;
      const auto values = slot_hyperparameters(table, workspace, slot, of_step);
      std::memcpy(workspace.hyperparameters.bytes() + slot * sizeof(values), &values, sizeof(values));
    }
  });
}

}  // namespace tandem::detail

namespace tandem {

Lars::Lars(NamedTensors parameters, const LarsOptions& options)
    : FusedOptimizer(
          std::move(parameters),
          {.kind = OptimizerKind::sgd, .momentum = options.momentum, .weight_decay = options.weight_decay},
          options.lr),
      trust_coefficient_(options.trust_coefficient) {
  check(std::isfinite(trust_coefficient_) && trust_coefficient_ > 0,
        "[lars] expected a finite trust coefficient above 0, got {}", trust_coefficient_);
  workspace_ = std::make_unique<detail::LarsWorkspace>(
      detail::make_workspace(this->parameters(), table(), trust_coefficient_));
}

Lars::~Lars() = default;

void Lars::update_parameters(std::span<const std::byte* const> gradients, const Tensor& hyperparameters) {
  const Device device = hyperparameters.device();
  const DType dtype = hyperparameters.dtype();
  const auto rule =
      options().momentum != 0 ? detail::OtherRule::adaptive_momentum : detail::OtherRule::adaptive;
  on_backend(device, "lars", [&]<Backend B>() {
    const StreamView stream = current_stream(device);
    detail::lars_rates_kernel<B>(dtype, table(), *workspace_, gradients, hyperparameters.bytes(), stream);
    detail::fused_update_kernel<B>(rule, dtype, table(), gradients, workspace_->hyperparameters.bytes(),
                                   stream);
  });
}

std::unique_ptr<Optimizer> make_lars(NamedTensors parameters, const OptimizerOptions& options,
                                     double learning_rate) {
  return std::make_unique<Lars>(
      std::move(parameters),
      LarsOptions{.lr = learning_rate, .momentum = options.momentum, .weight_decay = options.weight_decay});
}

}  // namespace tandem
