/* The element-wise maximum in plain C, without Tandem's header: what a plugin needs is declared here.
 *
 *     tandem study max --with max.c
 */
#include <stdint.h>

typedef struct {
  void* data;
  int64_t rows, columns, channels;
  int32_t type, reserved;
} TandemArray;

typedef struct {
  const TandemArray* inputs;
  TandemArray* outputs;
  int32_t input_count, output_count, threads, reserved;
} TandemCall;

enum { type_i32 = 4 };

int tandem_plugin_version(void) {
  return 1;
}

int tandem_max(const TandemCall* call) {
  const int64_t count = call->outputs[0].rows * call->outputs[0].columns;
  const int32_t *a = call->inputs[0].data, *b = call->inputs[1].data;
  int32_t* out = call->outputs[0].data;
  if (call->outputs[0].type != type_i32) return 1; /* other types are not supported */
  for (int64_t i = 0; i < count; ++i) out[i] = a[i] > b[i] ? a[i] : b[i];
  return 0;
}
