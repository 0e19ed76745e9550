/*
 * "sluice.batch/1": a handler that works on several messages in one call. Plain C11, with the rules of <sluice/abi.h>.
 * C++ authors have it as `handle(std::span<const sluice::Message>, sluice::BatchContext&)` (<sluice/batch.hpp>).
 *
 * Asked of sluice_handler the id answers a `sluice_batch`. A host that is older than this feature does not ask: it
 * calls the handler's `handle` with one message after the other. So does every host with a message that runs alone,
 * where it has no reason to call this with a count of 1.
 */
#ifndef SLUICE_BATCH_H
#define SLUICE_BATCH_H

#include "sluice/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SLUICE_BATCH_1 "sluice.batch/1"

typedef struct sluice_batch {
  uint32_t struct_size;
  uint32_t reserved;
  /* Works on `count` messages, at least one. Each has its own context, at the same place: its outcome is reported
   * there, and its log, its effects and its stop are its own. All have the same time-out, that of the call. A message
   * without a report is a fault, and the others are what was reported of them. Messages and contexts are valid until
   * the call returns. [worker] */
  void (*handle)(void* instance, const sluice_message* const* messages, const sluice_context* const* contexts,
                 size_t count);
} sluice_batch;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* SLUICE_BATCH_H */
