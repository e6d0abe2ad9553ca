/* The interface of plugins: code of yours that takes part in Tandem's studies, gradings and training runs.
 *
 * It is plain C: a plugin is a shared library with the functions below, in any language that can make one.
 * This header is convenient, not necessary; a plugin may declare the two structs itself.
 *
 *     #include <tandem/plugin.h>
 *     int tandem_plugin_version(void) { return TANDEM_PLUGIN_VERSION; }
 *     int tandem_max(const TandemCall* call) {
 *       const int32_t *a = call->inputs[0].data, *b = call->inputs[1].data;
 *       int32_t* out = call->outputs[0].data;
 *       …
 *       return 0;
 *     }
 *
 * `tandem study max --with mine.c` compiles, checks and measures it; `tandem new kernel NAME` writes a
 * project to start from; docs/plugins.md has the rest. */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface. It changes when a struct below changes. */
enum { TANDEM_PLUGIN_VERSION = 1 };

/* The types of elements. */
enum TandemType { TANDEM_F32 = 0, TANDEM_F64 = 1, TANDEM_U8 = 3, TANDEM_I32 = 4, TANDEM_I64 = 5 };

/* A dense array in row-major order: element (y, x, c) is at index (y * columns + x) * channels + c. */
typedef struct TandemArray {
  void* data;       /* on the device of the plugin; inputs may not be written to */
  int64_t rows;     /* of an image: its height */
  int64_t columns;  /* of an image: its width */
  int64_t channels; /* 1 for matrices */
  int32_t type;     /* enum TandemType */
  int32_t reserved;
} TandemArray;

/* One call of a function: arrays to read, arrays to fill. */
typedef struct TandemCall {
  const TandemArray* inputs;
  TandemArray* outputs;
  int32_t input_count;
  int32_t output_count;
  int32_t threads; /* how many CPU threads the function may use */
  int32_t reserved;
} TandemCall;

/* Required: returns TANDEM_PLUGIN_VERSION. */
int tandem_plugin_version(void);

/* Optional: returns 1 when the arrays shall be in the memory of a CUDA device. The functions then launch
 * kernels on the default stream and need not wait for them. Without it, arrays are in host memory. */
int tandem_plugin_cuda(void);

/* A plugin has one or more of the functions below. Each returns 0, or another number for a case it does not
 * support, such as a type. */

/* outputs[0] = the element-wise maximum of inputs[0] and inputs[1], all of the same shape and type. */
int tandem_max(const TandemCall* call);

/* outputs[0] = X * transpose(X) for X = inputs[0]. */
int tandem_xxt(const TandemCall* call);

/* outputs[0][y][x] = the sum over i, j of kernel[i][j] * image[y + i - kernel_rows / 2][x + j -
 * kernel_columns / 2] for image = inputs[0], kernel = inputs[1]; pixels outside of the image are 0. */
int tandem_correlation(const TandemCall* call);

/* An augmentation operation: `tandem train digits --with vignette.c --augment "vignette 0.2 0.8"`.
 * It runs in the process that trains and in its workers, in several threads at once. Its result must depend
 * on the call alone, so that every number of workers gives the same images. */

/* One image. */
typedef struct TandemAugmentCall {
  const uint8_t* in; /* height * width * channels levels, as in TandemArray */
  uint8_t* out;      /* to be filled: as many levels; it does not overlap `in` */
  int32_t height;
  int32_t width;
  int32_t channels; /* 1 is gray, 3 is RGB */
  int32_t reserved;
  double arguments[2]; /* uniform between the bounds of the recipe; 0 where it has none */
  uint32_t random[8];  /* random bits: other ones for each seed, epoch, image and operation of the recipe */
} TandemAugmentCall;

/* The word of the operation in recipes: letters, digits and underscores. */
const char* tandem_augment_name(void);
/* How many pairs of bounds MIN MAX follow it: 0, 1 or 2. */
int tandem_augment_arguments(void);
/* Optional: one line of help. */
const char* tandem_augment_help(void);
/* Fills call->out and returns 0; any other number ends the run. */
int tandem_augment(const TandemAugmentCall* call);

/* A model is C++: see tandem/model_plugin.h. */

#ifdef __cplusplus
}
#endif
