#include "c/tandem.h"

#include <algorithm>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include "tandem/core/build_info.h"
#include "tandem/core/check.h"
#include "tandem/train/classifier.h"

struct tandem_classifier {
  tandem::Classifier model;
};

namespace {

using namespace tandem;

thread_local std::string last_error;

// What `body` returns, or `failed` after an exception.
template <class T, class F>
T guarded(T failed, const F& body) noexcept {
  try {
    try {
      return body();
    } catch (const std::bad_alloc&) {
      last_error = "out of memory";
    } catch (const std::exception& error) {
      last_error = error.what();
    }
  } catch (...) {
    last_error.clear();  // no memory for the text
  }
  return failed;
}

void check_not_null(const void* pointer, const char* name) {
  check(pointer != nullptr, "[classifier] expected {}, got a null pointer", name);
}

ImageView view_of(const tandem_image& image) {
  const std::int64_t channels = image.channels == 0 ? 3 : image.channels;
  check(channels == 1 || channels == 3 || channels == 4, "[classifier] expected 1, 3 or 4 channels, got {}",
        channels);
  std::int64_t stride = image.stride;
  if (stride == 0)
    check(!__builtin_mul_overflow(image.width, channels, &stride),
          "[classifier] expected a width that fits in memory, got {}", image.width);
  return {image.pixels, image.height, image.width, static_cast<int>(channels), stride};
}

void classify(const tandem_classifier* classifier, const tandem_image* images, size_t count, int32_t* classes,
              float* probabilities) {
  check_not_null(classifier, "a classifier");
  if (count == 0) return;
  check_not_null(images, "images");
  check_not_null(classes, "room for the classes");
  thread_local std::vector<ImageView> views;  // these keep their memory, so that calls allocate nothing
  thread_local std::vector<Prediction> answers;
  views.clear();
  for (size_t i = 0; i < count; ++i) views.push_back(view_of(images[i]));
  if (answers.size() < count) answers.resize(count);
  classifier->model.classify(views, {answers.data(), count});
  for (size_t i = 0; i < count; ++i) {
    classes[i] = static_cast<int32_t>(answers[i].chosen);
    if (probabilities) probabilities = std::ranges::copy(answers[i].probabilities, probabilities).out;
  }
}

}  // namespace

extern "C" {

const char* tandem_version(void) {
  return build_info().version.data();  // a literal, so it ends with a zero
}

const char* tandem_last_error(void) {
  return last_error.c_str();
}

tandem_classifier* tandem_classifier_open(const char* file, const char* device, const char* precision) {
  return guarded<tandem_classifier*>(nullptr, [&] {
    check_not_null(file, "a file");
    return new tandem_classifier{
        Classifier(file, {.device = device ? parse_device(device) : cpu_device,
                          .precision = precision ? parse_precision(precision) : MatmulPrecision::fp32})};
  });
}

void tandem_classifier_close(tandem_classifier* classifier) {
  delete classifier;
}

size_t tandem_classifier_class_count(const tandem_classifier* classifier) {
  return classifier ? classifier->model.classes().size() : 0;
}

const char* tandem_classifier_class_name(const tandem_classifier* classifier, size_t index) {
  return guarded<const char*>(nullptr, [&] {
    check_not_null(classifier, "a classifier");
    const std::vector<std::string>& classes = classifier->model.classes();
    check(index < classes.size(), "[classifier] expected a class from 0 to {}, got {}", classes.size() - 1,
          index);
    return classes[index].c_str();
  });
}

int32_t tandem_classifier_classify(const tandem_classifier* classifier, const uint8_t* rgb, int64_t width,
                                   int64_t height, int64_t stride, float* probabilities) {
  return guarded<int32_t>(-1, [&] {
    const tandem_image image{rgb, width, height, stride, 3};
    int32_t chosen = -1;
    classify(classifier, &image, 1, &chosen, probabilities);
    return chosen;
  });
}

int32_t tandem_classifier_classify_batch(const tandem_classifier* classifier, const tandem_image* images,
                                         size_t count, int32_t* classes, float* probabilities) {
  return guarded<int32_t>(-1, [&] {
    classify(classifier, images, count, classes, probabilities);
    return 0;
  });
}

}  // extern "C"
