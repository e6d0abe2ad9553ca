/* The interface of transports: messages between the ranks of a run, as a table of functions.
 *
 * It is plain C, so that a transport can be a shared library (a plugin for MPI needs nothing of Tandem but
 * this header) and the program needs no MPI. The functions map to MPI_Isend, MPI_Irecv, MPI_Test, MPI_Cancel.
 *
 * Messages are matched by sender and tag; two messages from the same sender with the same tag arrive in the
 * order in which they were posted. Receiver and sender give the same number of bytes. Posting never waits:
 * what a receiver has not asked for is kept by the transport. A buffer belongs to the transport until its
 * request is done or canceled. One thread calls at a time. */
#pragma once
/* NOLINTBEGIN(modernize-deprecated-headers,modernize-redundant-void-arg,readability-identifier-naming) */

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface. It changes when the struct below changes. */
enum { TANDEM_TRANSPORT_VERSION = 1 };

/* What test() returns. */
enum TandemRequestState { TANDEM_REQUEST_FAILED = -1, TANDEM_REQUEST_PENDING = 0, TANDEM_REQUEST_DONE = 1 };

/* What peer_state() returns: a peer that left called close(); one that ended did not. */
enum TandemPeerState { TANDEM_PEER_RUNS = 0, TANDEM_PEER_ENDED = 1, TANDEM_PEER_LEFT = 2 };

/* Tags are below this number (MPI guarantees 32767). */
enum { TANDEM_TRANSPORT_TAGS = 32767 };

typedef struct TandemTransport {
  int32_t version;    /* TANDEM_TRANSPORT_VERSION */
  int32_t any_thread; /* 1: calls may come from different threads; 0: from the one that opened it only */
  int32_t rank;
  int32_t size;
  int32_t joint_close; /* 1: close() waits for all ranks to call it, as MPI_Finalize does */
  void* state;         /* the first argument of all functions */

  /* Start to send or receive `bytes` bytes. Return a request (0 or more), or −1: see error(). */
  int64_t (*post_send)(void* state, int32_t to, int32_t tag, const void* data, int64_t bytes);
  int64_t (*post_receive)(void* state, int32_t from, int32_t tag, void* data, int64_t bytes);
  /* Moves data and returns an enum TandemRequestState. A request that is not pending any more is gone. */
  int32_t (*test)(void* state, int64_t request);
  /* Gives a pending request up. Its buffer is free afterwards; its message may be lost or cut off, so that
   * nothing can be sent to that rank any more. */
  void (*cancel)(void* state, int64_t request);
  /* An enum TandemPeerState; TANDEM_PEER_RUNS where the transport cannot know. */
  int32_t (*peer_state)(void* state, int32_t rank);
  /* One sentence about the last failure; valid until the next call. */
  const char* (*error)(void* state);
  /* Leaves the run and frees the state. `failed` is 1 when a rank may not leave as it should: then close()
   * must not wait for the others. */
  void (*close)(void* state, int32_t failed);

  /* Waiting, optional (all three or none, then the caller sleeps for growing times): wait() returns when
   * something may have happened since signal() returned `seen`, when wake() was called or after the time.
   * These may be called from any thread at any time before close(). */
  uint32_t (*signal)(void* state);
  void (*wait)(void* state, uint32_t seen, int64_t max_ns);
  void (*wake)(void* state);
} TandemTransport;

/* What a shared library with a transport defines. */
int32_t tandem_transport_version(void); /* returns TANDEM_TRANSPORT_VERSION */
/* Fills the table, waiting for the other ranks if need be. Returns 0; or 1, then state and error() of the
 * table are valid. */
int32_t tandem_transport_open(TandemTransport* table);

#ifdef __cplusplus
}
#endif
/* NOLINTEND(modernize-deprecated-headers,modernize-redundant-void-arg,readability-identifier-naming) */
