// Errors of libjpeg, which returns from them by longjmp. Internal to tandem/image.
#pragma once

#include <csetjmp>
#include <cstddef>
#include <cstdio>

#include <jpeglib.h>

namespace tandem {

struct JpegErrors {
  jpeg_error_mgr base;  // must be first: libjpeg returns a pointer to this member
  std::jmp_buf jump;
  char text[JMSG_LENGTH_MAX];
};

// Keeps the text of an error and jumps to JpegErrors::jump.
[[noreturn]] inline void on_jpeg_error(j_common_ptr info) {
  auto* errors = reinterpret_cast<JpegErrors*>(info->err);
  errors->base.format_message(info, errors->text);
  std::longjmp(errors->jump, 1);
}

}  // namespace tandem
