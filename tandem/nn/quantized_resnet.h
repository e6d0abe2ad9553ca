// Residual networks in 8-bit integers, for inference. Norms are folded into the convolutions,
// whose weights have one scale per filter; images and activations are 8-bit integers, with one scale per
// layer that is chosen from real images. The last layer is in f32. Not for users: load_model() makes it of a
// file.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tandem/nn/activation_histogram.h"
#include "tandem/nn/resnet.h"
#include "tandem/ops/block_epilogue.h"
#include "tandem/ops/conv/prepacked_conv.h"
#include "tandem/ops/matmul.h"

namespace tandem {

// One convolution of a QuantizedResNet, with its norm folded in. Values are numbered in the order in which
// they are computed: 0 is the result of the first convolution after max pooling, i that of convolution i.
struct QuantizedConvolution {
  std::string name;
  Tensor weight;  // u8, as in files: (out, channels, kernel y, kernel x)
  Tensor scale;   // f32 (out)
  Tensor bias;    // f32 (out)
  Conv2dOptions options;
  std::size_t input;  // the number of the value; unused by the first convolution, which gets the images
  std::optional<std::size_t> residual;
  bool has_relu;
  detail::Quantization output;
};

// Normalized images (n, height, width, channels), f32 or bf16, on the device of the model → logits (n,
// classes) in f32. No gradients.
class QuantizedResNet : public Module {
 public:
  // The shapes of a network; the weights are those of load_state_dict().
  explicit QuantizedResNet(const ResNet& like);
  ~QuantizedResNet() override;

  Tensor forward(const Tensor& x) override;
  // What the last layer gets: (n, features) in f32.
  Tensor features(const Tensor& x);

  // Throws Error that names the first tensor whose scales are not finite and positive, or whose zero is none
  // of 0 … 255.
  void check_scales() const;

  detail::Quantization image_values() const;
  // In the order in which they are computed, with views of the weights.
  std::vector<QuantizedConvolution> convolutions() const;
  YX pool_kernel() const;
  Window pool_window() const;
  Linear& head() { return head_; }

 private:
  friend class ResNetCalibration;
  struct Layer;
  void prepare();

  std::int64_t channels_;
  Tensor images_;                               // f32: scale and zero
  std::vector<std::unique_ptr<Layer>> layers_;  // the first convolution, then the others in order
  Linear head_;
  std::optional<detail::PrepackedConv2d> packed_head_;  // on the CPU: a convolution of single pixels
  std::uint64_t prepared_revision_ = 0;
  bool is_prepared_ = false;
};

// Makes a QuantizedResNet of a ResNet and some of its training images.
class ResNetCalibration {
 public:
  // The model must outlive it, in evaluation mode on the CPU.
  explicit ResNetCalibration(ResNet& model);
  ~ResNetCalibration();
  ResNetCalibration(const ResNetCalibration&) = delete;
  ResNetCalibration& operator=(const ResNetCalibration&) = delete;

  // Normalized images in f32. Returns the features of the network whose norms are folded.
  Tensor observe(const Tensor& x);
  // With the ranges of the activations observed so far.
  std::unique_ptr<QuantizedResNet> quantize(detail::CalibrationMethod method) const;

 private:
  struct Layer;
  ResNet& model_;
  float min_ = 0, max_ = 0;  // of the images, and 0
  std::vector<std::unique_ptr<Layer>> layers_;
};

// The dtype of the images that a network takes. An 8-bit network takes f32 in every precision: it rounds them
// itself, once.
DType image_dtype(const Module& network, MatmulPrecision precision);

}  // namespace tandem
