/*
 * "sluice.async/1": a handler that begins with a message and returns, and says later, from any thread, what became of
 * it. Plain C11, with the rules of <sluice/abi.h>. C++ authors have it as sluice::AsyncContext and, for coroutines,
 * sluice::Task (<sluice/async.hpp>).
 *
 * Asked of sluice_handler the id answers a `sluice_async`; asked of sluice_host a `sluice_async_host`. A host that is
 * older than this feature answers NULL: a handler that cannot do without says so in `create`.
 *
 * A message at work is named by a token. Tokens are numbers and are never used twice: one that is completed twice,
 * after its end, or after its instance was destroyed does no harm; the host refuses it and writes a line to its log
 * that names the job and the message. A message that is not completed in time is taken from the handler as from one
 * that does not return: its stop is requested at the time-out, and a while later it counts as failed. Its memory stays
 * valid all the same until it is completed.
 */
#ifndef SLUICE_ASYNC_H
#define SLUICE_ASYNC_H

#include "sluice/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SLUICE_ASYNC_1 "sluice.async/1"

/* A message at work. Never 0. */
typedef uint64_t sluice_token;

typedef int32_t sluice_answer;
enum {
  SLUICE_ACCEPTED = 0,
  SLUICE_TWICE = 1,    /* the message was completed before */
  SLUICE_STALE = 2,    /* no message of this token is at work: it ended long ago, or never was */
  SLUICE_NO_MEMORY = 3 /* unknown values count as refusals */
};

/* Completion and steering of messages by their tokens. Valid, and callable, until the process ends. */
typedef struct sluice_async_host {
  uint32_t struct_size;
  uint32_t reserved;
  void* host; /* the host's own; hand it back */
  /* Ends the message with this outcome. Once it is accepted, its message, its context and what they point to are void.
   * NULL as the outcome is a FAULT. Never waits for anything but a lock. [thread-safe] */
  sluice_answer (*complete)(const struct sluice_async_host* async, sluice_token token, const sluice_outcome* outcome);
  /* As sluice_context's of the message. Of a token that is not at work they do nothing, but for a line in the log, and
   * answer 1, 0 and 1. [thread-safe] */
  void (*log)(const struct sluice_async_host* async, sluice_token token, sluice_log_level level, sluice_string text);
  int32_t (*stop_requested)(const struct sluice_async_host* async, sluice_token token);
  int64_t (*time_left)(const struct sluice_async_host* async, sluice_token token);
  int32_t (*extend)(const struct sluice_async_host* async, sluice_token token, int64_t duration);
  /* As sluice_context's: "sluice.effects/1" and other features of the message, valid until it is completed, for one
   * thread at a time. NULL of a token that is not at work. [thread-safe] */
  const void* (*extension)(const struct sluice_async_host* async, sluice_token token, const char* id);
  /* Has `call(data)` called once, on a thread of the host's: in `delay` nanoseconds, or earlier as soon as the stop of
   * the message is requested, it times out, or it is completed. It must not wait. INT64_MAX: only for one of those.
   * When it is refused, `call` is not called. [thread-safe] */
  sluice_answer (*call_after)(const struct sluice_async_host* async, sluice_token token, int64_t delay,
                              void (*call)(void* data), void* data);
} sluice_async_host;

/* What `begin` is given besides the message. Valid until the message is completed. */
typedef struct sluice_async_context {
  uint32_t struct_size;
  uint32_t reserved;
  sluice_token token;
  const sluice_async_host* async;
  /* The same message's log, time, stop and features as a synchronous handler has them. What is reported to it has no
   * effect: `complete` says it. Where it says [worker] it is meant for one thread at a time. */
  const sluice_context* context;
} sluice_async_context;

typedef struct sluice_async {
  uint32_t struct_size;
  uint32_t reserved;
  /* Begins with a message, whose memory is valid until it is completed, and returns without waiting. It may be
   * completed already then. Called on one thread at a time for each instance, whatever flags the handler has; as many
   * messages as the job's `concurrency` says are at work at once. `destroy` is not called while any is. [worker] */
  void (*begin)(void* instance, const sluice_message* message, const sluice_async_context* context);
} sluice_async;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* SLUICE_ASYNC_H */
