/* An augmentation operation of your own. This one darkens an image towards its corners.
 *
 *     tandem train digits --with vignette.c --augment "vignette 0.2 0.8, rotate -10 10"
 *     tandem augment photo.png --with vignette.c --augment "vignette 0.2 0.8" -o sheet.png
 *
 * 0.2 and 0.8 are the bounds of its argument: how dark the corners get, from 0 (unchanged) to 1 (black). Every
 * image gets another value in every epoch. */
#include <tandem/plugin.h>

int tandem_plugin_version(void) { return TANDEM_PLUGIN_VERSION; }

const char* tandem_augment_name(void) { return "vignette"; }
const char* tandem_augment_help(void) { return "darker towards the corners, 0: unchanged, 1: black corners"; }
int tandem_augment_arguments(void) { return 1; } /* one pair of bounds: vignette MIN MAX */

int tandem_augment(const TandemAugmentCall* call) {
  const double darkness = call->arguments[0];
  if (darkness < 0 || darkness > 1) return 1; /* not supported: ends the run */
  const double center_x = (call->width - 1) / 2.0, center_y = (call->height - 1) / 2.0;
  const double corner = center_x * center_x + center_y * center_y;
  const uint8_t* in = call->in;
  uint8_t* out = call->out;
  for (int y = 0; y < call->height; ++y)
    for (int x = 0; x < call->width; ++x) {
      const double dx = x - center_x, dy = y - center_y;
      const double distance = corner > 0 ? (dx * dx + dy * dy) / corner : 0; /* 0 in the center, 1 in a corner */
      for (int c = 0; c < call->channels; ++c) *out++ = (uint8_t)(*in++ * (1 - darkness * distance) + 0.5);
    }
  return 0;
}
