/*
 * "sluice.effects/1": what a handler wants committed together with the end of its message, all of it or nothing. Plain
 * C11, with the rules of <sluice/abi.h>. C++ authors have it as sluice::Context (<sluice/effects.hpp>).
 *
 * Asked of sluice_context the id answers a `sluice_effects`, valid until `handle` returns; asked of sluice_host a
 * `sluice_effects_host`, valid as long as the host. A host that is older than this feature answers NULL to both. Asked
 * of sluice_handler it answers a `sluice_effects_handler`; most have nothing to say there, and answer NULL.
 *
 * Effects are staged while `handle` runs and committed with SLUICE_DONE, in the transaction that removes the message;
 * with every other outcome they are dropped. Once a call has refused something, SLUICE_DONE is a fault: a part of what
 * a handler wanted is never committed. `clear` begins again.
 */
#ifndef SLUICE_EFFECTS_H
#define SLUICE_EFFECTS_H

#include "sluice/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SLUICE_EFFECTS_1 "sluice.effects/1"

/* Where the job's queue lies, and with it everything that is staged. */
typedef int32_t sluice_store;
enum {
  /* An outbox, which shares no transaction with a queue: messages alone can be staged. They are sent before the row is
   * marked, at least once; a deduplication id makes them one. Unknown values count as this. */
  SLUICE_STORE_NONE = 0,
  SLUICE_STORE_SQLITE = 1,  /* SQL statements on tables in the embedded store's file */
  SLUICE_STORE_DYNAMODB = 2 /* items of DynamoDB tables, in the account and region of the queue's table */
};

typedef struct sluice_effects_host {
  uint32_t struct_size;
  sluice_store store;
} sluice_effects_host;

typedef struct sluice_effects_handler {
  uint32_t struct_size;
  /* Not 0: all that `handle` does is to send, and to return. What it sends for messages of one group is sent in their
   * order, in whatever order they were handled, so that a host may have several of a group handled at once. */
  int32_t only_sends;
} sluice_effects_handler;

typedef int32_t sluice_priority;
enum {
  SLUICE_PRIORITY_LOW = -1,
  SLUICE_PRIORITY_NORMAL = 0,
  SLUICE_PRIORITY_HIGH = 1,
  SLUICE_PRIORITY_CRITICAL = 2 /* unknown values are refused */
};

/* A message to a queue of the same store. */
typedef struct sluice_effect_message {
  uint32_t struct_size;
  sluice_priority priority;
  sluice_string queue;
  sluice_string id; /* empty: the host makes one */
  sluice_string body;
  sluice_string content_type; /* empty: "text/plain" */
  sluice_string group;        /* empty: none */
  sluice_string dedup_id;     /* empty: none; otherwise a second one within the window is not delivered */
  int64_t dedup_window;       /* nanoseconds; 0: the usual five minutes */
  int64_t delay;              /* nanoseconds; not claimable before that */
  const sluice_attribute* attributes;
  size_t attribute_count;
} sluice_effect_message;

/* What becomes of the message when a condition fails, or the store refuses the write for another reason of its own. */
typedef int32_t sluice_on_refusal;
enum {
  SLUICE_REFUSED_RETRY = 0, /* a failed attempt, retried by the job's policy. Unknown values count as this */
  SLUICE_REFUSED_REJECT = 1 /* to the DLQ, with the refusal as its reason */
};

typedef int32_t sluice_item_action;
enum {
  SLUICE_ITEM_PUT = 1,
  SLUICE_ITEM_UPDATE = 2,
  SLUICE_ITEM_DELETE = 3,
  SLUICE_ITEM_CHECK = 4 /* writes nothing: `condition` has to hold */
};

/* A write to an item, or a check of one, in DynamoDB's words. */
typedef struct sluice_effect_item {
  uint32_t struct_size;
  sluice_item_action action;
  sluice_on_refusal on_refusal;
  uint32_t reserved;
  sluice_string table;
  sluice_string item;            /* DynamoDB JSON, {"id": {"S": "a"}}: the whole item for a put, its key otherwise */
  sluice_string update;          /* update expression; for an update only */
  sluice_string condition;       /* condition expression; a check has to have one */
  const sluice_attribute* names; /* "#n" and the attribute's name */
  size_t name_count;
  sluice_string values; /* DynamoDB JSON of what expressions name, {":v": {"N": "1"}}; may be empty */
  sluice_string label;  /* by which a refusal names it; empty: by its number */
} sluice_effect_item;

typedef int32_t sluice_sql_type;
enum {
  SLUICE_SQL_NULL = 0,
  SLUICE_SQL_INTEGER = 1,
  SLUICE_SQL_REAL = 2,
  SLUICE_SQL_TEXT = 3,
  SLUICE_SQL_BLOB = 4 /* unknown values are refused */
};

/* A parameter; as sluice_string it never changes. */
typedef struct sluice_sql_value {
  sluice_sql_type type;
  uint32_t reserved;
  int64_t integer;
  double real;
  sluice_string bytes; /* TEXT, BLOB */
} sluice_sql_value;

/* One SQL statement on tables of the user's. */
typedef struct sluice_effect_sql {
  uint32_t struct_size;
  sluice_on_refusal on_refusal;
  sluice_string statement;
  const sluice_sql_value* parameters; /* of ?1, ?2, ... */
  size_t parameter_count;
  int64_t rows; /* how many rows it has to change; -1: any number */
  sluice_string label;
} sluice_effect_sql;

/* The effects of one attempt. Each call copies what it is given, and returns NULL; or why it is refused, one line that
 * is valid until the next call. */
typedef struct sluice_effects {
  uint32_t struct_size;
  sluice_store store;
  void* host; /* the host's own; hand it back */
  /* [worker] */
  const char* (*send)(const struct sluice_effects* effects, const sluice_effect_message* message);
  /* [worker] */
  const char* (*write_item)(const struct sluice_effects* effects, const sluice_effect_item* item);
  /* [worker] */
  const char* (*run_sql)(const struct sluice_effects* effects, const sluice_effect_sql* sql);
  /* What duplicates of this message see as the first one's result, where the job keeps idempotency keys; the last call
   * counts. At most 32 KiB. [worker] */
  const char* (*set_result)(const struct sluice_effects* effects, sluice_string result);
  /* 1 when a message with the same idempotency key was done before, and the job runs duplicates all the same: `result`
   * is what the handler gave back then, valid until `handle` returns. Otherwise 0. [worker] */
  int32_t (*first_result)(const struct sluice_effects* effects, sluice_string* result);
  /* Drops everything that was staged, and every refusal. [worker] */
  void (*clear)(const struct sluice_effects* effects);
} sluice_effects;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* SLUICE_EFFECTS_H */
