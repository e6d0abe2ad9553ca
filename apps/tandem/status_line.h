// One line on a terminal that shows what a long command is doing; nothing elsewhere.
#pragma once

#include <string>

#include "tandem/text/utf8.h"
#include "tandem/train/progress.h"

namespace tandem {

class StatusLine {
 public:
  StatusLine() : output_(stderr_progress()) {}
  ~StatusLine() { clear(); }
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  void show(const std::string& text) {
    if (!output_.terminal) return;
    output_.write("\r\x1b[K" + shorten(text, output_.width() - 1));
    visible_ = true;
  }

  void clear() {
    if (visible_) output_.write("\r\x1b[K");
    visible_ = false;
  }

 private:
  ProgressOutput output_;
  bool visible_ = false;
};

}  // namespace tandem
