/* tests/c: the C header, compiled as C11, with a model of digits (28x28, gray, 10 classes). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>

#include "tandem.h"

static int failures = 0;

static void expect(int holds, const char* what, int line) {
  if (holds) return;
  fprintf(stderr, "classifier_test.c:%d: expected %s; last error: %s\n", line, what, tandem_last_error());
  ++failures;
}
#define EXPECT(condition) expect(condition, #condition, __LINE__)

static int says(const char* text) { return strstr(tandem_last_error(), text) != NULL; }

static uint8_t pixels[40 * 40 * 4];

struct job {
  const tandem_classifier* model;
  int32_t expected;
  int wrong;
};

static int classify_often(void* argument) {
  struct job* const job = argument;
  job->wrong += strcmp(tandem_last_error(), "") != 0; /* errors of other threads are not seen */
  for (int i = 0; i < 50; ++i)
    job->wrong += tandem_classifier_classify(job->model, pixels, 40, 40, 0, NULL) != job->expected;
  return 0;
}

int main(int count, char** words) {
  if (count != 2) return 2;
  for (size_t i = 0; i < sizeof pixels; ++i) pixels[i] = (uint8_t)(i * 7919 >> 3);
  EXPECT(strcmp(tandem_version(), TANDEM_TEST_VERSION) == 0);
  EXPECT(strcmp(tandem_last_error(), "") == 0);
  EXPECT(tandem_classifier_open("no such file", NULL, NULL) == NULL && says("no such file"));
  EXPECT(tandem_classifier_open(NULL, NULL, NULL) == NULL && says("null"));
  EXPECT(tandem_classifier_open(words[1], "toaster", NULL) == NULL && says("toaster"));
  EXPECT(tandem_classifier_open(words[1], "cpu", "fp7") == NULL && says("fp7"));
  EXPECT(tandem_classifier_open(words[0], NULL, NULL) == NULL); /* a program is not a model */
  tandem_classifier* const model = tandem_classifier_open(words[1], "cpu", "fp32");
  EXPECT(model != NULL);
  if (!model) return 1;

  EXPECT(tandem_classifier_class_count(model) == 10);
  EXPECT(tandem_classifier_class_count(NULL) == 0);
  EXPECT(strcmp(tandem_classifier_class_name(model, 9), "9") == 0);
  EXPECT(tandem_classifier_class_name(model, 10) == NULL && says("from 0 to 9, got 10"));
  EXPECT(tandem_classifier_class_name(NULL, 0) == NULL && says("null"));

  float row[10], rows[20];
  const int32_t chosen = tandem_classifier_classify(model, pixels, 40, 40, 0, row);
  EXPECT(chosen >= 0 && chosen < 10);
  float sum = 0;
  for (int i = 0; i < 10; ++i) {
    sum += row[i];
    EXPECT(row[i] <= row[chosen]);
  }
  EXPECT(sum > 0.999f && sum < 1.001f);
  EXPECT(tandem_classifier_classify(model, pixels, 40, 40, 120, NULL) == chosen);
  EXPECT(tandem_classifier_classify(model, NULL, 40, 40, 0, row) == -1 && says("null"));
  EXPECT(tandem_classifier_classify(NULL, pixels, 40, 40, 0, row) == -1 && says("null"));
  EXPECT(tandem_classifier_classify(model, pixels, 0, 40, 0, row) == -1);
  EXPECT(tandem_classifier_classify(model, pixels, INT64_MAX, 40, 0, row) == -1);
  EXPECT(tandem_classifier_classify(model, pixels, 40, -1, 0, row) == -1 && says("40x-1"));
  EXPECT(tandem_classifier_classify(model, pixels, 40, 40, -120, row) == -1 && says("-120"));
  EXPECT(tandem_classifier_classify(model, pixels, 40, 40, 119, row) == -1 && says("119"));

  tandem_image images[2] = {{pixels, 40, 40, 0, 0}, {pixels, 20, 30, 80, 4}};
  int32_t classes[2] = {-7, -7};
  EXPECT(tandem_classifier_classify_batch(model, images, 2, classes, rows) == 0);
  EXPECT(classes[0] == chosen && memcmp(rows, row, sizeof row) == 0);
  EXPECT(classes[1] >= 0 && classes[1] < 10);
  EXPECT(tandem_classifier_classify_batch(model, images, 2, classes, NULL) == 0);
  EXPECT(tandem_classifier_classify_batch(model, NULL, 0, NULL, NULL) == 0);
  EXPECT(tandem_classifier_classify_batch(model, NULL, 1, classes, NULL) == -1 && says("images"));
  EXPECT(tandem_classifier_classify_batch(model, images, 1, NULL, NULL) == -1 && says("classes"));
  images[1].channels = 2;
  classes[0] = -7;
  EXPECT(tandem_classifier_classify_batch(model, images, 2, classes, rows) == -1 && says("got 2"));
  EXPECT(classes[0] == -7);

  struct job jobs[4];
  thrd_t threads[4];
  for (int i = 0; i < 4; ++i) {
    jobs[i] = (struct job){model, chosen, 0};
    EXPECT(thrd_create(&threads[i], classify_often, &jobs[i]) == thrd_success);
  }
  for (int i = 0; i < 4; ++i) {
    thrd_join(threads[i], NULL);
    EXPECT(jobs[i].wrong == 0);
  }
  tandem_classifier_close(model);
  tandem_classifier_close(NULL);
  return failures > 0;
}
