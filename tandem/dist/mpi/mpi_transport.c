/* The MPI plugin: messages between ranks that srun or mpirun started, as transport_abi.h describes them.
 *
 * This file needs the headers of MPI and transport_abi.h, and nothing else of Tandem. The libraries of
 * different MPIs do not fit each other; build the plugin with the MPI whose launcher starts the ranks:
 *
 *   mpicc -shared -fPIC -O2 -o libtandem_mpi.so mpi_transport.c
 *
 * MPI is initialized and finalized by the thread that opens the transport. Where it allows calls by one
 * thread at a time (MPI_THREAD_SERIALIZED), a thread that waits for a message need not wake that one; else
 * MPI_THREAD_FUNNELED is enough. Only messages between two ranks are used. A collective operation of MPI
 * waits without telling for whom, and would keep this thread from noticing that a rank is gone. */
#include <limits.h>
#include <mpi.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "tandem/dist/transport_abi.h"

/* A message on its way; the entry is free when the request is MPI_REQUEST_NULL. */
typedef struct {
  MPI_Request request;
  int64_t bytes;
  int32_t peer;
  int32_t is_send;
  int64_t next_free;
} Message;

typedef struct {
  Message* messages;
  int64_t count;
  int64_t first_free; /* −1: none */
  int is_owner;       /* MPI was initialized here, and is finalized here */
  char error[MPI_MAX_ERROR_STRING + 256];
} State;

/* One line: MPI's texts may have several. */
static void set_error(State* state, const char* format, ...) {
  va_list values;
  va_start(values, format);
  vsnprintf(state->error, sizeof(state->error), format, values);
  va_end(values);
  for (char* c = state->error; *c != '\0'; ++c)
    if (*c == '\n' || *c == '\r') *c = ' ';
}

static void set_mpi_error(State* state, const char* function, int code) {
  char text[MPI_MAX_ERROR_STRING + 1] = "";
  int length = 0;
  if (MPI_Error_string(code, text, &length) != MPI_SUCCESS) length = 0;
  text[length] = '\0';
  set_error(state, "%s failed: %s", function, length > 0 ? text : "unknown error");
}

/* −1 when there is no memory. */
static int64_t take_message(State* state) {
  if (state->first_free < 0) {
    const int64_t count = state->count > 0 ? 2 * state->count : 64;
    Message* messages = realloc(state->messages, (size_t)count * sizeof(Message));
    if (messages == NULL) {
      set_error(state, "no memory for %lld messages", (long long)count);
      return -1;
    }
    for (int64_t i = state->count; i < count; ++i) {
      messages[i].request = MPI_REQUEST_NULL;
      messages[i].next_free = i + 1 < count ? i + 1 : -1;
    }
    state->first_free = state->count;
    state->messages = messages;
    state->count = count;
  }
  const int64_t number = state->first_free;
  state->first_free = state->messages[number].next_free;
  return number;
}

static void free_message(State* state, int64_t number) {
  state->messages[number].request = MPI_REQUEST_NULL;
  state->messages[number].next_free = state->first_free;
  state->first_free = number;
}

/* A type of `bytes` bytes, for messages that are longer than an int can say. */
static int make_long_type(int64_t bytes, MPI_Datatype* type) {
  const int64_t block = (int64_t)1 << 20;
  const MPI_Aint places[2] = {0, (MPI_Aint)(bytes / block * block)};
  int lengths[2] = {1, (int)(bytes % block)};
  MPI_Datatype blocks, line, types[2];
  int code = MPI_Type_contiguous((int)block, MPI_BYTE, &line);
  if (code != MPI_SUCCESS) return code;
  code = MPI_Type_contiguous((int)(bytes / block), line, &blocks);
  MPI_Type_free(&line);
  if (code != MPI_SUCCESS) return code;
  types[0] = blocks;
  types[1] = MPI_BYTE;
  code = MPI_Type_create_struct(2, lengths, places, types, type);
  MPI_Type_free(&blocks);
  return code == MPI_SUCCESS ? MPI_Type_commit(type) : code;
}

static int64_t post(State* state, int is_send, int32_t peer, int32_t tag, void* data, int64_t bytes) {
  const int64_t number = take_message(state);
  if (number < 0) return -1;
  Message* message = &state->messages[number];
  message->bytes = bytes;
  message->peer = peer;
  message->is_send = is_send;
  const int is_long = bytes > INT_MAX;
  MPI_Datatype type = MPI_BYTE;
  int code = is_long ? make_long_type(bytes, &type) : MPI_SUCCESS;
  const int count = is_long ? 1 : (int)bytes;
  if (code == MPI_SUCCESS)
    code = is_send ? MPI_Isend(data, count, type, peer, tag, MPI_COMM_WORLD, &message->request)
                   : MPI_Irecv(data, count, type, peer, tag, MPI_COMM_WORLD, &message->request);
  if (is_long && type != MPI_BYTE) MPI_Type_free(&type); /* freed when the message is complete */
  if (code == MPI_SUCCESS) return number;
  set_mpi_error(state, is_send ? "MPI_Isend" : "MPI_Irecv", code);
  free_message(state, number);
  return -1;
}

static int64_t post_send(void* state, int32_t to, int32_t tag, const void* data, int64_t bytes) {
  return post(state, 1, to, tag, (void*)(uintptr_t)data, bytes);
}

static int64_t post_receive(void* state, int32_t from, int32_t tag, void* data, int64_t bytes) {
  return post(state, 0, from, tag, data, bytes);
}

static int32_t test(void* opened, int64_t number) {
  State* state = opened;
  Message* message = &state->messages[number];
  MPI_Status status;
  MPI_Count received = message->bytes;
  int done = 0, class_of_error = MPI_SUCCESS;
  const int code = MPI_Test(&message->request, &done, &status);
  if (code == MPI_SUCCESS && !done) return TANDEM_REQUEST_PENDING;
  const Message last = *message;
  free_message(state, number);
  if (code != MPI_SUCCESS) {
    MPI_Error_class(code, &class_of_error);
    if (class_of_error == MPI_ERR_TRUNCATE)
      set_error(state, "expected a message of %lld bytes from rank %d, got a longer one",
                (long long)last.bytes, last.peer);
    else
      set_mpi_error(state, "MPI_Test", code);
    return TANDEM_REQUEST_FAILED;
  }
  if (last.is_send) return TANDEM_REQUEST_DONE;
  if (MPI_Get_elements_x(&status, MPI_BYTE, &received) == MPI_SUCCESS && received == last.bytes)
    return TANDEM_REQUEST_DONE;
  set_error(state, "expected a message of %lld bytes from rank %d, got %lld", (long long)last.bytes,
            last.peer, (long long)received);
  return TANDEM_REQUEST_FAILED;
}

/* MPI moves data only while one of its functions runs, and none but these follow in a run that is given up:
 * what has not arrived does not arrive any more. Sends cannot be canceled. */
static void cancel(void* opened, int64_t number) {
  State* state = opened;
  Message* message = &state->messages[number];
  if (!message->is_send) MPI_Cancel(&message->request);
  MPI_Request_free(&message->request);
  free_message(state, number);
}

static int32_t peer_state(void* state, int32_t rank) {
  (void)state;
  (void)rank;
  return TANDEM_PEER_RUNS; /* MPI does not tell */
}

static const char* error_text(void* state) {
  return ((State*)state)->error;
}

/* After a failure MPI stays initialized until the process ends: MPI_Finalize waits for all ranks. */
static void close_transport(void* opened, int32_t failed) {
  State* state = opened;
  if (!failed && state->is_owner) MPI_Finalize();
  free(state->messages);
  free(state);
}

/* Initializes MPI, unless another part of the program has done so. */
static int initialize(State* state) {
  int initialized = 0, finalized = 0, level = 0, is_main = 0;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  if (finalized) {
    set_error(state, "MPI was finalized before in this process");
    return 0;
  }
  if (!initialized) {
    const int code = MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level);
    if (code != MPI_SUCCESS) {
      set_mpi_error(state, "MPI_Init_thread", code);
      return 0;
    }
    state->is_owner = 1;
  } else if (MPI_Query_thread(&level) != MPI_SUCCESS || MPI_Is_thread_main(&is_main) != MPI_SUCCESS ||
             (level < MPI_THREAD_MULTIPLE && !is_main)) {
    set_error(state, "expected MPI_THREAD_MULTIPLE from the program that initialized MPI, got level %d",
              level);
    return 0;
  }
  return 1;
}

int32_t tandem_transport_version(void) {
  return TANDEM_TRANSPORT_VERSION;
}

int32_t tandem_transport_open(TandemTransport* table) {
  static State no_memory = {NULL, 0, -1, 0, "no memory"};
  State* state = calloc(1, sizeof(State));
  TandemTransport opened = {0};
  int rank = 0, size = 1, level = MPI_THREAD_FUNNELED;
  opened.version = TANDEM_TRANSPORT_VERSION;
  opened.joint_close = 1;
  opened.state = state != NULL ? state : &no_memory;
  opened.post_send = post_send;
  opened.post_receive = post_receive;
  opened.test = test;
  opened.cancel = cancel;
  opened.peer_state = peer_state;
  opened.error = error_text;
  opened.close = close_transport;
  *table = opened;
  if (state == NULL) return 1;
  state->first_free = -1;
  if (!initialize(state)) return 1;
  /* Errors come back as return values; by default they end the process. */
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Query_thread(&level);
  table->any_thread = level >= MPI_THREAD_SERIALIZED;
  table->rank = rank;
  table->size = size;
  return 0;
}
