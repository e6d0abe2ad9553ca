// Transform: what happens to an image between the data set and the network. One value type for both families
// of operations: those for images of one size (recipe.h) and those that make images of any size fit the
// network's input (photo_recipe.h).
#pragma once

#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "tandem/augment/photo_recipe.h"
#include "tandem/augment/recipe.h"
#include "tandem/image/image.h"

namespace tandem {

/// A list of image operations with random arguments; by default none, the identity. A plain value: it is
/// copied into shared memory and passed to kernels.
class Transform {
 public:
  Transform() = default;
  /// Operations for images of one size. Implicit: `compose({random_rotate({-10, 10})})` is a transform.
  Transform(const Recipe& recipe) : pixels_(recipe) {}
  /// Operations that resize photographs; those without effect are left out. Throws as check_photo_recipe().
  Transform(const PhotoRecipe& recipe);

  /// Parses "none", "digits" (digits_recipe()), "photo" (training_transform(size)) or a list of operations of
  /// one family, separated by commas: "rotate -10 10, shift -2 2" or "crop 0.08 1, jitter 0.4 0.4 0.4 0.1".
  /// transform_operations() lists them. `crop` and `flip` belong to both families: the other operations
  /// decide. Without others the transform resizes, and for_one_size() has the same operations for images of
  /// one size. `size` is the side of the images that resizing operations produce. Throws Error for any other
  /// text; the message has the word and what was expected.
  static Transform parse(std::string_view text, int size = 224);
  /// The text that parse() turns into this transform (given the same size); "none" for the identity. Of crops
  /// and flips for images of one size, parse() makes a transform whose for_one_size() they are.
  std::string to_string() const;

  /// The transform for images of one size. Of crops and flips only, which both families have, the operations
  /// that keep the size; any other transform as it is.
  Transform for_one_size() const { return pixels_.empty() ? *this : Transform(pixels_); }
  /// A transform that resizes, with results of size × size, and without a meaning for images of one size.
  Transform for_photos(int size) const;

  /// Whether this is the identity.
  bool empty() const { return !resizes_ && pixels_.empty(); }
  /// Whether it takes images of any size, gray or RGB, and produces RGB images of one size. Otherwise all
  /// images must have one size, which does not change.
  bool resizes() const { return resizes_; }
  /// Whether it has a custom operation, which runs on the CPU only.
  bool cpu_only() const { return !resizes_ && pixels_.cpu_only(); }
  /// The size of the result for images of size `in`.
  ImageSize output_size(ImageSize in) const {
    return resizes_ ? ImageSize{.height = photo_.height, .width = photo_.width, .channels = 3} : in;
  }

  /// The operations of a transform that does not resize.
  const Recipe& pixels() const;
  /// The operations of a transform that resizes.
  const PhotoRecipe& photo() const;

  friend bool operator==(const Transform&, const Transform&) = default;

 private:
  bool resizes_ = false;
  Recipe pixels_;  // of a transform that resizes: the same operations for images of one size, if there are
  PhotoRecipe photo_;
};

static_assert(std::is_trivially_copyable_v<Transform>);

/// The usual transform for training on photographs: a random crop resized to size × size, and a horizontal
/// flip of half of the images. Throws Error for a size outside 1 … 4096.
Transform training_transform(int size = 224);
/// The usual transform for evaluation on photographs: fitted to size × size, evaluation_photo_recipe().
Transform evaluation_transform(int size = 224, PhotoFit fit = PhotoFit::resize);

/// One operation of the grammar.
struct TransformOperation {
  std::string_view name;       ///< "rotate"
  std::string_view arguments;  ///< "MIN MAX [nearest|linear|cubic]"
  std::string_view help;       ///< one line
  bool keeps_size = false;     ///< whether it belongs to the transforms for images of one size
  bool resizes = false;        ///< whether it belongs to the transforms that resize
};

/// All operations, in the order of their families; the registered ones (own_operation.h) are last.
std::vector<TransformOperation> transform_operations();
/// The names, arguments and help lines of all operations, one per line.
std::string transform_help();

}  // namespace tandem
