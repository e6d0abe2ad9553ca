/* Tandem from C, and from every language that calls C: classifies images with a model that `tandem train`
 * saved, exactly as `tandem predict` does.
 *
 * The functions and the layout of tandem_image stay as they are for as long as the library is
 * libtandem-c.so.1; new functions may be added. All functions may be called from several threads at once,
 * also on one classifier; only tandem_classifier_close() must be the last call on it. No exception leaves the
 * library. */
#ifndef TANDEM_H
#define TANDEM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tandem_classifier tandem_classifier;

/* 8 bits per channel, rows from top to bottom, channels interleaved. */
typedef struct tandem_image {
  const uint8_t* pixels;
  int64_t width;
  int64_t height;
  int64_t stride;   /* bytes from one row to the next; 0: width * channels */
  int64_t channels; /* 3 (RGB), 1 (gray) or 4 (RGBA; alpha is dropped); 0: 3 */
} tandem_image;

/* "0.1.0" */
const char* tandem_version(void);

/* Why the last function of this thread that failed did so, in one line; "" if none did. Valid until the next
 * failure in this thread. */
const char* tandem_last_error(void);

/* Loads a model file, such as best.safetensors of a run. `device` is "cpu", "cuda" or "cuda:1", NULL: "cpu".
 * `precision` is "fp32", "tf32" or "bf16", the last two with CUDA only, NULL: "fp32". NULL if it fails. */
tandem_classifier* tandem_classifier_open(const char* file, const char* device, const char* precision);
/* NULL is ignored. */
void tandem_classifier_close(tandem_classifier* classifier);

/* 0 for NULL. */
size_t tandem_classifier_class_count(const tandem_classifier* classifier);
/* UTF-8, valid until the classifier is closed; NULL if there is no such class. */
const char* tandem_classifier_class_name(const tandem_classifier* classifier, size_t index);

/* The index of the class of an RGB image, -1 if it fails. Rows are `stride` bytes apart; 0: 3 * width. Writes
 * one probability per class to `probabilities` unless that is NULL. */
int32_t tandem_classifier_classify(const tandem_classifier* classifier, const uint8_t* rgb, int64_t width,
                                   int64_t height, int64_t stride, float* probabilities);

/* The same for `count` images of any sizes: `classes` gets one index per image, `probabilities`, which may be
 * NULL, one row of class_count values per image. 0, or -1 if it fails: then nothing was written. */
int32_t tandem_classifier_classify_batch(const tandem_classifier* classifier, const tandem_image* images,
                                         size_t count, int32_t* classes, float* probabilities);

#ifdef __cplusplus
}
#endif
#endif
