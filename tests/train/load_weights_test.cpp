#include "tandem/train/load_weights.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "tandem/core/check.h"
#include "tandem/files/shipped_weights.h"
#include "tandem/nn/model_registry.h"
#include "tests/train/shipped_file.h"

namespace tandem {
namespace {

std::unique_ptr<Module> small_model(std::int64_t classes, std::uint64_t seed) {
  return make_model({.model = "cnn", .channels = 3, .classes = classes}, seed);
}

std::vector<float> value(const Module& model, const std::string& name) {
  const NamedTensors state = model.state_dict();
  return std::ranges::find(state, name, &NamedTensor::name)->tensor.to_vector<float>();
}

TEST(LoadWeights, LastLayer_IsNewUnlessKept) {
  const TempFolder folder;
  const auto source = small_model(2, 9), own = small_model(2, 1), other = small_model(3, 1);
  write_safetensors(folder / "w.safetensors", {.metadata = {}, .tensors = source->state_dict()});
  const std::vector<float> head = value(*own, "fc.weight");
  load_weights(*own, folder / "w.safetensors");
  EXPECT_EQ(value(*own, "conv1.weight"), value(*source, "conv1.weight"));
  EXPECT_EQ(value(*own, "fc.weight"), head);
  load_weights(*own, folder / "w.safetensors", true);
  EXPECT_EQ(value(*own, "fc.weight"), value(*source, "fc.weight"));
  load_weights(*other, folder / "w.safetensors");
  EXPECT_EQ(value(*other, "conv1.weight"), value(*source, "conv1.weight"));
  EXPECT_NE(error_text([&] {
              load_weights(*other, folder / "w.safetensors", true);
            }).find("fc.weight (expected f32 [3, "),
            std::string::npos);
}

TEST(LoadWeights, Bf16_BecomesTheDtypeOfTheModel) {
  const TempFolder folder;
  const TensorFile file = shipped_tensors("cnn");
  write_safetensors(folder / "w.safetensors", file);
  const auto model = small_model(2, 1);
  load_weights(*model, folder / "w.safetensors");
  for (const auto& [name, tensor] : file.tensors)
    EXPECT_EQ(value(*model, name), cast(tensor, DType::f32).to_vector<float>()) << name;
  EXPECT_EQ(
      std::ranges::count(file.tensors, DType::bf16, [](const NamedTensor& n) { return n.tensor.dtype(); }),
      6);
  for (const auto& [name, tensor] : model->state_dict())
    EXPECT_EQ(tensor.dtype(), name.ends_with("tracked") ? DType::i64 : DType::f32) << name;
}

// What can be wrong with the file that ships with Tandem. The model stays as it is.
class DamagedWeights : public testing::Test {
 protected:
  std::string load_error() {
    const std::vector<float> before = value(*model_, "conv1.weight");
    const std::string text = error_text([&] { load_weights(*model_, find_shipped_weights("resnet18")); });
    EXPECT_EQ(value(*model_, "conv1.weight"), before);
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    return text;
  }
  std::string path() const { return file_.path().string(); }
  static NamedTensor& tensor(TensorFile& file, const std::string& name) {
    return *std::ranges::find(file.tensors, name, &NamedTensor::name);
  }

  ShippedFile file_;
  std::unique_ptr<Module> model_ = make_model({.model = "resnet18", .channels = 3, .classes = 2}, 1);
};

TEST_F(DamagedWeights, CutFile_IsAnError) {
  file_.write();
  const std::uintmax_t whole = std::filesystem::file_size(file_.path());
  for (const std::uintmax_t size : {whole - 1, whole / 2, std::uintmax_t{100}, std::uintmax_t{3}}) {
    std::filesystem::resize_file(file_.path(), size);
    EXPECT_NE(load_error().find(path() + ": "), std::string::npos) << size;
  }
  std::filesystem::resize_file(file_.path(), 0);
  EXPECT_NE(load_error().find(path() + ": "), std::string::npos);
}

TEST_F(DamagedWeights, ChangedByte_IsAnError) {
  file_.write();
  std::string bytes = get_bytes(file_.path());
  bytes[bytes.size() - 1000] ^= 1;
  put_bytes(file_.path(), bytes);
  EXPECT_NE(load_error().find("SHA-256"), std::string::npos) << load_error();
}

TEST_F(DamagedWeights, OtherTensors_AreNamed) {
  file_.write(shipped_tensors("cnn"));
  EXPECT_TRUE(load_error().starts_with("[train] " + path() +
                                       ": not the weights of this model: [load_state_dict] expected the "))
      << load_error();
  TensorFile file = shipped_tensors();
  std::erase_if(file.tensors, [](const NamedTensor& named) { return named.name == "layer3.1.conv2.weight"; });
  file_.write(file);
  EXPECT_NE(load_error().find("missing: layer3.1.conv2.weight"), std::string::npos) << load_error();
}

TEST_F(DamagedWeights, OtherDtype_IsAnError) {
  TensorFile file = shipped_tensors();
  Tensor& bias = tensor(file, "bn1.bias").tensor;
  bias = cast(bias, DType::i32);
  file_.write(file);
  EXPECT_NE(load_error().find("bn1.bias (expected f32 [64], got i32 [64])"), std::string::npos)
      << load_error();
  std::string bytes = get_bytes(file_.path());
  bytes.replace(bytes.find("\"BF16\""), 6, "\"F4\"  ");
  put_bytes(file_.path(), bytes);
  EXPECT_NE(load_error().find("expected a dtype of F32, F64, BF16, "), std::string::npos) << load_error();
  EXPECT_NE(load_error().find(", got F4"), std::string::npos) << load_error();
}

TEST_F(DamagedWeights, NaN_IsAnError) {
  TensorFile file = shipped_tensors();
  Tensor& weight = tensor(file, "layer1.0.conv1.weight").tensor;
  Tensor values = cast(weight, DType::f32);
  values.data<float>()[7] = std::numeric_limits<float>::quiet_NaN();
  weight = cast(values, DType::bf16);
  file_.write(file);
  EXPECT_EQ(load_error(), "[weights] " + path() +
                              ": expected finite weights, got nan at element 7 of tensor "
                              "'layer1.0.conv1.weight'");
}

}  // namespace
}  // namespace tandem
