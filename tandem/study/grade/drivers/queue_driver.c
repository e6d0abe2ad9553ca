/* Grades a queue between processes: writers put messages, this process gets them. The queue's source was included
 * above. It has these functions: */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tandem/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

void* tandem_queue_create(void);
int tandem_queue_put(void* queue, const void* message, int64_t bytes);
int64_t tandem_queue_get(void* queue, void* message, int64_t capacity);

int tandem_plugin_version(void) { return TANDEM_PLUGIN_VERSION; }

enum { driver_large = 1 << 20 };

/* A writer that is killed in the middle of a message which is larger than any pipe. */
static void driver_killed_writer(void* queue) {
  pid_t child = fork();
  if (child == 0) {
    struct itimerval soon;
    char* message = (char*)malloc(driver_large);
    memset(message, 'k', driver_large);
    memset(&soon, 0, sizeof soon);
    soon.it_value.tv_usec = 100000;
    signal(SIGALRM, SIG_DFL);
    setitimer(ITIMER_REAL, &soon, 0);
    tandem_queue_put(queue, message, driver_large);
    _exit(0);
  }
  waitpid(child, 0, 0);
}

int tandem_queue(const TandemCall* call) {
  const uint8_t* messages = (const uint8_t*)call->inputs[0].data;
  const int64_t* sizes = (const int64_t*)call->inputs[1].data;
  const int64_t writers = *(const int64_t*)call->inputs[2].data;
  const int64_t with_kill = *(const int64_t*)call->inputs[3].data;
  const int64_t count = call->inputs[0].rows, width = call->inputs[0].columns;
  uint8_t* received = (uint8_t*)call->outputs[0].data;
  int64_t* received_sizes = (int64_t*)call->outputs[1].data;
  char* buffer = (char*)malloc(driver_large);
  void* queue = tandem_queue_create();
  int64_t w, i;
  if (with_kill) driver_killed_writer(queue);
  for (w = 0; w < writers; ++w) {
    if (fork() != 0) continue;
    for (i = w; i < count; i += writers)
      if (tandem_queue_put(queue, messages + i * width, sizes[i]) != 0) _exit(1);
    _exit(0);
  }
  for (i = 0; i < count;) {
    const int64_t size = tandem_queue_get(queue, buffer, driver_large);
    if (size < 0) return 1;
    if (size == driver_large) continue; /* of the killed writer, complete */
    memset(received + i * width, 0, (size_t)width);
    memcpy(received + i * width, buffer, (size_t)(size < width ? size : width));
    received_sizes[i++] = size;
  }
  for (w = 0; w < writers; ++w) wait(0);
  free(buffer);
  return 0;
}

#ifdef __cplusplus
}
#endif
