// Puts a module into evaluation mode for a scope.
#pragma once

#include <utility>

#include "tandem/nn/module.h"

namespace tandem {

// While it exists, nothing changes the weights of modules that this thread evaluates and that are in
// evaluation mode already: what was derived from them, such as packed weights, is kept from one evaluation to
// the next.
class ConstantWeights {
 public:
  ConstantWeights() : before_(std::exchange(is_promised_, true)) {}
  ~ConstantWeights() { is_promised_ = before_; }
  ConstantWeights(const ConstantWeights&) = delete;
  ConstantWeights& operator=(const ConstantWeights&) = delete;

  static bool is_promised() { return is_promised_; }

 private:
  static inline thread_local bool is_promised_ = false;
  bool before_;
};

class EvaluationMode {
 public:
  explicit EvaluationMode(Module& model)
      : model_(model),
        training_(model.is_training()),
        is_needed_(training_ || !ConstantWeights::is_promised()) {
    if (is_needed_) model_.eval();
  }
  ~EvaluationMode() {
    if (is_needed_) model_.train(training_);
  }
  EvaluationMode(const EvaluationMode&) = delete;
  EvaluationMode& operator=(const EvaluationMode&) = delete;

 private:
  Module& model_;
  bool training_, is_needed_;
};

}  // namespace tandem
