/*
 * "sluice.around/1": a handler that goes around others. Plain C11, with the rules of <sluice/abi.h>. C++ authors have
 * it as <sluice/around.hpp>.
 *
 * Asked of sluice_handler the id answers a `sluice_around`, which stays for the life of the process. Such a handler is
 * not what a job has messages handled by: a job names it in [[job.around]], with options of its own, and may name
 * several. For each message the host calls their `enter` in the order of the job file, then `handle` of the job's
 * handler, then their `leave` in the reverse order.
 *
 * `create`, `destroy`, the options and SLUICE_HANDLER_CONCURRENT mean what they mean for any handler: with the flag one
 * instance serves all workers at once, otherwise each worker has one of its own. `handle` is never called by a host
 * that knows this feature; it is there for those that do not, and says so in a fault.
 */
#ifndef SLUICE_AROUND_H
#define SLUICE_AROUND_H

#include "sluice/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SLUICE_AROUND_1 "sluice.around/1"

/* What `enter` may replace, set to what the message has. What it points to is valid until `leave` has returned, or
 * until `enter` has, where that does not answer SLUICE_AROUND_GO_ON. */
typedef struct sluice_around_call {
  uint32_t struct_size;
  uint32_t reserved;
  void* cookie; /* the handler's own; `leave` gets it back */
  sluice_string body;
  sluice_string content_type;
  const sluice_attribute* attributes;
  size_t attribute_count;
} sluice_around_call;

typedef int32_t sluice_around_answer;
enum {
  SLUICE_AROUND_GO_ON = 0, /* the call goes on inwards, with what stands in `call` */
  /* It ends here, with the outcome that was reported through the context; none is a fault. Neither the handler nor what
   * stands further inwards is called, nor this one's `leave`. Unknown values count as this one. */
  SLUICE_AROUND_ANSWERED = 1
};

typedef struct sluice_around {
  uint32_t struct_size;
  uint32_t reserved;
  /* `message` is what those further out have made of it. Effects may be staged through the context. [worker] */
  sluice_around_answer (*enter)(void* instance, const sluice_message* message, const sluice_context* context,
                                sluice_around_call* call);
  /* Called once for each `enter` that has answered SLUICE_AROUND_GO_ON, whatever has become of the call since: the
   * handler may have failed, or returned long after its time-out. `outcome` is what came from within; one that is
   * reported through the context takes its place. Effects may be staged: they are committed if the call ends as DONE,
   * and those that were staged before an outcome that is not DONE are dropped with it. For a handler that completes
   * later it runs on the thread that completes. [worker] */
  void (*leave)(void* instance, void* cookie, const sluice_message* message, const sluice_context* context,
                const sluice_outcome* outcome);
} sluice_around;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* SLUICE_AROUND_H */
