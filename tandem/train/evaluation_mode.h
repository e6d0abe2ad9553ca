// Puts a module into evaluation mode for a scope.
#pragma once

#include "tandem/nn/module.h"

namespace tandem {

class EvaluationMode {
 public:
  explicit EvaluationMode(Module& model) : model_(model), training_(model.is_training()) { model.eval(); }
  ~EvaluationMode() { model_.train(training_); }
  EvaluationMode(const EvaluationMode&) = delete;
  EvaluationMode& operator=(const EvaluationMode&) = delete;

 private:
  Module& model_;
  bool training_;
};

}  // namespace tandem
