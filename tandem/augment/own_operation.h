// Operations of the user, which take part in recipes like the built-in ones: on the CPU, with any number and
// kind of workers.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "tandem/augment/recipe.h"
#include "tandem/image/image.h"

namespace tandem {

/// One image for an operation of the user.
struct AugmentCall {
  ImageSize size;                    ///< of both images
  const std::uint8_t* in = nullptr;  ///< rows of interleaved pixels
  std::uint8_t* out = nullptr;       ///< to be filled; does not overlap `in`
  double arguments[2] = {};          ///< uniform between the bounds of the recipe; 0 where it has none
  std::uint32_t random[8] = {};      ///< random bits, other ones for each seed, epoch, sample and operation
};

/// An operation of the user.
struct AugmentOperation {
  std::string name;     ///< its word in recipes: letters, digits and underscores
  std::string summary;  ///< one line of help
  int arguments = 0;    ///< how many pairs of bounds MIN MAX follow the name: 0, 1 or 2
  /// Called by several threads at once. The result may depend on the call only. An exception ends the run.
  std::function<void(const AugmentCall& call)> apply;
};

/// The maximum number of operations that can be registered.
inline constexpr int max_own_operations = 8;

/// Adds an operation to the grammar of Transform::parse(). A program with process workers registers the same
/// operations in the same order before run_worker_if_asked(). Throws Error for a name that is taken or not a
/// word, and for more than max_own_operations. Not thread-safe: call it before other threads start.
void register_augmentation(AugmentOperation operation);

/// A step of a recipe that applies the registered operation of this name; compose() checks the bounds. Throws
/// Error for a name that is not registered.
AugmentStep random_operation(std::string_view name, Bounds first = {}, Bounds second = {});

}  // namespace tandem
