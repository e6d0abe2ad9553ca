/* Classifies an image in memory with a model that `tandem train` saved: c_classifier best.safetensors */
#include <stdio.h>
#include <stdlib.h>
#include <tandem.h>

enum { width = 64, height = 48 };

int main(int count, char** words) {
  if (count != 2) return fprintf(stderr, "usage: c_classifier MODEL\n"), 2;
  tandem_classifier* const model = tandem_classifier_open(words[1], NULL, NULL);
  if (!model) return fprintf(stderr, "%s\n", tandem_last_error()), 1;

  static uint8_t rgb[height][width][3]; /* any source of bytes: a camera, a decoder */
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) rgb[y][x][0] = rgb[y][x][1] = rgb[y][x][2] = x > 28 && x < 36 ? 255 : 0;

  const size_t classes = tandem_classifier_class_count(model);
  float* const probabilities = malloc(classes * sizeof *probabilities);
  const int32_t chosen = tandem_classifier_classify(model, rgb[0][0], width, height, 0, probabilities);
  if (chosen < 0)
    fprintf(stderr, "%s\n", tandem_last_error());
  else
    printf("%s (%.3f)\n", tandem_classifier_class_name(model, (size_t)chosen), probabilities[chosen]);
  free(probabilities);
  tandem_classifier_close(model);
  return chosen < 0;
}
