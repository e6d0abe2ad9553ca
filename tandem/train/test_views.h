// The views of a test image whose outputs are averaged: those that training with flips and shifts has shown.
#pragma once

#include <cstdint>
#include <string>

namespace tandem {

/// one: the image; flip: also its mirror image; shift: both, and both moved by a pixel, reflected at the
/// border, to the upper left and to the lower right. Moved ones have together as much weight as the others.
enum class TestViews : std::uint8_t { one, flip, shift };

/// For logs: "the image and its mirror image".
std::string describe_views(TestViews views);

}  // namespace tandem
