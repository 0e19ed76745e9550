/*
 * "sluice.checkpoint/1": progress that is stored with a message while its handler works, so that the next attempt goes
 * on from there. Plain C11, with the rules of <sluice/abi.h>. C++ authors have it as sluice::Context
 * (<sluice/checkpoint.hpp>).
 *
 * Asked of sluice_context the id answers a `sluice_checkpoint`, valid until `handle` returns. A host that is older than
 * this feature answers NULL.
 *
 * There is one checkpoint a message: each takes the place of the one before. It outlives failed attempts, snoozes,
 * crashes and the DLQ, and goes with the message when that is done or discarded.
 */
#ifndef SLUICE_CHECKPOINT_H
#define SLUICE_CHECKPOINT_H

#include "sluice/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SLUICE_CHECKPOINT_1 "sluice.checkpoint/1"

/* The longest one, in bytes. A longer one is refused, never cut. */
#define SLUICE_CHECKPOINT_LIMIT 65536

typedef struct sluice_checkpoint {
  uint32_t struct_size;
  uint32_t reserved;
  void* host; /* the host's own; hand it back */
  /* 1 when the message has one, which an attempt before or this one has stored: `bytes` is valid until the next
   * `store`, or until `handle` returns. Otherwise 0. [worker] */
  int32_t (*last)(const struct sluice_checkpoint* checkpoint, sluice_string* bytes);
  /* Stores `bytes`; none: takes the checkpoint away. Returns NULL once it is durable; otherwise why it is not, one line
   * that is valid until the next call.
   *
   * `with_effects` not 0: what has been staged of "sluice.effects/1" so far is committed with it, in one transaction,
   * and staging goes on empty; the result that was set for duplicates stays staged. 0: what is staged stays so.
   *
   * Waits for the store, for a few seconds at most. After a failure the message and what is staged are as they were.
   * But when the store did not say whether effects are committed, nothing more can be: SLUICE_DONE is a fault then, and
   * the next attempt sees by `last` what holds. [worker] */
  const char* (*store)(const struct sluice_checkpoint* checkpoint, sluice_string bytes, int32_t with_effects);
} sluice_checkpoint;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* SLUICE_CHECKPOINT_H */
