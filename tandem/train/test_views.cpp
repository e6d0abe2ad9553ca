#include "tandem/train/test_views.h"

namespace tandem {

std::string describe_views(TestViews views) {
  return views == TestViews::one    ? "the image"
         : views == TestViews::flip ? "the image and its mirror image"
                                    : "the image, its mirror image, and both moved by a pixel";
}

}  // namespace tandem
