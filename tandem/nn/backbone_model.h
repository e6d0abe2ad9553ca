// Image classifiers made of a backbone, which computes features, and a head, which classifies them. In
// transfer learning the backbone is pretrained and only the head is trained.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tandem/nn/dropout.h"
#include "tandem/nn/linear.h"
#include "tandem/nn/module.h"

namespace tandem {

/// Base class of classifiers whose backbone can be frozen and whose head, a linear layer, can be replaced.
class BackboneModel : public Module {
 public:
  Tensor forward(const Tensor& x) final { return head(head_input(x)); }

  /// (n, height, width, channels) → (n, feature_count()) in f32.
  virtual Tensor features(const Tensor& x) = 0;
  /// (n, feature_count()) → logits (n, classes) in f32: dropout, if the model has it, and the last layer.
  Tensor head(const Tensor& features);
  std::int64_t feature_count() const { return head_.weight().size(1); }
  /// Computes what forward() and training give to the head in place of features(), for a backbone that is
  /// frozen: in 8-bit integers, for example. An empty function ends that.
  void set_feature_function(std::function<Tensor(const Tensor&)> compute);
  /// The result of that function, if there is one, else features(x).
  Tensor head_input(const Tensor& x);
  /// The outputs of the last three stages, each averaged over the image, side by side: (n, sum of their
  /// channels) in f32. For a model without such stages, features().
  virtual Tensor stage_features(const Tensor& x) { return features(x); }

  /// The last layer.
  Linear& head_layer() { return head_; }
  /// Whether a name of parameters() is one of the last layer.
  bool is_head(const std::string& parameter_name) const;
  /// Replaces the last layer, for example to train for other classes: set_head(Linear(feature_count(), 2)).
  /// It is moved to the device of the model. Construct optimizers afterwards: they hold the old head. Throws
  /// Error unless the layer takes feature_count() inputs in f32.
  void set_head(Linear head);

  /// The children of each stage, from the input to the head, which belongs to none. Those that no stage names
  /// belong to the last one. By default one stage with everything.
  virtual std::vector<std::vector<std::string>> stages() const { return {std::vector<std::string>()}; }
  std::int64_t stage_count() const { return std::ssize(stages()); }
  /// The stage of a name of parameters(), from 0; stage_count() for one of the head.
  std::int64_t stage_of(const std::string& parameter_name) const;
  /// Freezes the parameters of the first `count` stages. Throws Error unless there are so many.
  void freeze_stages(std::int64_t count);

  /// Freezes all parameters but those of the head. Batch norms still update their running statistics in
  /// training unless freeze_statistics() is called too.
  void freeze_backbone();
  /// True when no parameter but those of the head requires a gradient.
  bool is_backbone_frozen() const;
  /// Makes all batch norms use their running statistics, also in training.
  virtual void freeze_statistics() = 0;

 protected:
  /// A head with random weights from its own stream of the seed, after dropout with this probability. The
  /// model registers head_layer() and head_dropout().
  BackboneModel(std::int64_t features, std::int64_t classes, std::uint64_t seed, double dropout = 0);
  /// Null without dropout. It is part of the head, so a frozen backbone has the same features in every batch.
  Dropout* head_dropout() { return dropout_.get(); }
  /// The mean over height and width: (n, height, width, channels) → (n, channels) in f32.
  static Tensor image_mean(const Tensor& y);

 private:
  bool is_head(const Tensor& parameter) const;

  Linear head_;
  std::unique_ptr<Dropout> dropout_;
  std::function<Tensor(const Tensor&)> feature_function_;
};

}  // namespace tandem
