/*
 * The binary contract between the Sluice host and a plugin: plain C11, no library to link.
 *
 * A plugin exports exactly one symbol, the constant `sluice_plugin_v1` of type `sluice_plugin`. The host reads it before
 * it calls anything in the plugin. Authors use <sluice/handler.hpp>, which makes that symbol; this header is for those
 * who write a layer for another language, or want to know.
 *
 * Rules
 *  - Every struct begins with `struct_size` and only ever grows at its end. A reader checks the size before it reads a
 *    field that was not in version 1.0. Arrays of such structs are arrays of pointers, so that growth moves no element.
 *    `sluice_string` and `sluice_attribute` have no size because they never change.
 *  - Enumerations cross as int32_t. A value the reader does not know is handled as its comment says.
 *  - Memory is borrowed, both ways: what a call is given is valid until that call returns, unless its comment says
 *    longer, and the receiver copies what it wants to keep. Nothing is freed across the boundary.
 *  - No exception crosses, in either direction.
 *  - Text is UTF-8 and not terminated by a zero unless the type is `const char *`. Receivers tolerate bytes that are not
 *    UTF-8.
 *  - Each function has a thread tag. [control]: called by one thread at a time, never while `handle` runs in the same
 *    instance. [worker]: called on the thread that works on the message. [thread-safe]: from any thread, at any time in
 *    the validity of its first argument. Tags are guarantees about concurrency, not names of OS threads.
 *  - A plugin is never unloaded while the process lives.
 */
#ifndef SLUICE_ABI_H
#define SLUICE_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this header. A host runs plugins of its own major version and of any minor version up to its own. */
#define SLUICE_ABI_MAJOR 1
#define SLUICE_ABI_MINOR 0

/* "sluice\0\1" read as a little-endian number: tells a Sluice plugin from any other shared object. */
#define SLUICE_PLUGIN_MAGIC UINT64_C(0x0100656369756c73)

#define SLUICE_PLUGIN_SYMBOL "sluice_plugin_v1"

/* Plugins are built with hidden visibility; this marks what stays visible. */
#define SLUICE_EXPORT __attribute__((visibility("default")))

/* Borrowed bytes. `data` may be NULL when `size` is 0. */
typedef struct sluice_string {
  const char *data;
  size_t size;
} sluice_string;

/* ---- options: what a handler can be configured with, declared as data --------------------------------------------- */

typedef int32_t sluice_option_type;
enum {
  SLUICE_OPTION_STRING = 1,
  SLUICE_OPTION_INTEGER = 2,
  SLUICE_OPTION_NUMBER = 3,   /* a floating-point number; an integer is accepted */
  SLUICE_OPTION_BOOLEAN = 4,
  SLUICE_OPTION_DURATION = 5, /* text such as "30s"; arrives as nanoseconds in `integer` */
  SLUICE_OPTION_LIST = 6,     /* list of strings */
  SLUICE_OPTION_MAP = 7       /* table of strings: name and value alternate in `items` */
};

enum {
  SLUICE_OPTION_REQUIRED = 1u << 0,
  SLUICE_OPTION_SECRET = 1u << 1 /* the host never prints its value */
};

/* One declared option. `default_value` is written as in TOML ("hello" without quotes for a string, 5, true, 30s,
 * ["a", "b"]); NULL: no default, the option is absent unless configured. */
typedef struct sluice_option {
  uint32_t struct_size;
  sluice_option_type type;
  uint32_t flags;
  uint32_t reserved;
  const char *name;
  const char *default_value;
  const char *help;
} sluice_option;

/* One configured value, after validation and defaults. Which member counts follows from `type`. */
typedef struct sluice_option_value {
  uint32_t struct_size;
  sluice_option_type type;
  sluice_string name;
  sluice_string string;       /* STRING; for DURATION and numbers the text as it was written */
  int64_t integer;            /* INTEGER, BOOLEAN (0 or 1), DURATION (nanoseconds) */
  double number;              /* NUMBER */
  const sluice_string *items; /* LIST, MAP */
  size_t item_count;
} sluice_option_value;

/* ---- what the host gives ------------------------------------------------------------------------------------------- */

typedef int32_t sluice_log_level;
enum {
  SLUICE_LOG_TRACE = 0,
  SLUICE_LOG_DEBUG = 1,
  SLUICE_LOG_INFO = 2,
  SLUICE_LOG_WARN = 3,
  SLUICE_LOG_ERROR = 4 /* unknown levels count as INFO */
};

/* The host, as one handler instance sees it. Valid from `create` until `destroy` has returned. */
typedef struct sluice_host {
  uint32_t struct_size;
  uint32_t abi_minor; /* of the host */
  void *host;         /* the host's own; hand it back */
  sluice_string job;  /* name of the job this instance works for */
  /* Writes a line to the host's log, marked with the job. [thread-safe] */
  void (*log)(const struct sluice_host *host, sluice_log_level level, sluice_string text);
  /* A feature beyond this struct by its id, such as "sluice.metrics/1"; NULL when the host does not have it. The answer
   * lives as long as this struct. [thread-safe] */
  const void *(*extension)(const struct sluice_host *host, const char *id);
} sluice_host;

typedef struct sluice_attribute {
  sluice_string name;
  sluice_string value;
} sluice_attribute;

/* A message, valid until `handle` returns. */
typedef struct sluice_message {
  uint32_t struct_size;
  uint32_t attempt;      /* 1 at the first delivery */
  uint32_t max_attempts; /* 0: no limit */
  uint32_t reserved;
  sluice_string id;
  sluice_string queue;
  sluice_string body;
  sluice_string content_type; /* "text/plain", "application/json", "application/octet-stream" or the sender's own */
  sluice_string group;
  int64_t sent_at; /* nanoseconds since 1970-01-01 UTC */
  const sluice_attribute *attributes;
  size_t attribute_count;
} sluice_message;

typedef int32_t sluice_status;
enum {
  SLUICE_DONE = 0,    /* worked: the message is deleted */
  SLUICE_RETRY = 1,   /* failed, try again: after `delay`, or by the job's policy when it is negative; counts as attempt */
  SLUICE_SNOOZE = 2,  /* not yet: again after `delay`; does not count as attempt */
  SLUICE_REJECT = 3,  /* will never work: to the DLQ with `reason` */
  SLUICE_DISCARD = 4, /* not wanted: deleted, `reason` is logged */
  SLUICE_RELEASE = 5, /* put back at once for anybody; does not count as attempt */
  SLUICE_FAULT = 6    /* the handler broke (an exception); as RETRY by policy. Unknown values count as FAULT */
};

typedef struct sluice_outcome {
  uint32_t struct_size;
  sluice_status status;
  int64_t delay;        /* nanoseconds; see the status */
  sluice_string reason; /* shown to people; cut by the host to 4,096 bytes */
} sluice_outcome;

/* One attempt at one message. Valid until `handle` returns. */
typedef struct sluice_context {
  uint32_t struct_size;
  uint32_t reserved;
  void *host; /* the host's own; hand it back */
  /* Reports the outcome; the last report counts. None at all is a FAULT. [worker] */
  void (*report)(const struct sluice_context *context, const sluice_outcome *outcome);
  /* Writes a line to the host's log, marked with job and message. [thread-safe] */
  void (*log)(const struct sluice_context *context, sluice_log_level level, sluice_string text);
  /* Not 0 once the handler should finish: the host drains, the attempt timed out, or the lease was lost. [thread-safe] */
  int32_t (*stop_requested)(const struct sluice_context *context);
  /* Waits for that, at most `timeout` nanoseconds; returns as stop_requested. [thread-safe] */
  int32_t (*wait_for_stop)(const struct sluice_context *context, int64_t timeout);
  /* Nanoseconds until the attempt times out; 0 once it has; INT64_MAX without a limit. [thread-safe] */
  int64_t (*time_left)(const struct sluice_context *context);
  /* Moves the attempt's time-out to now + `duration` nanoseconds. The message stays invisible meanwhile: the host sees to
   * that by itself. 0 on success, not 0 when the lease is lost already. [worker] */
  int32_t (*extend)(const struct sluice_context *context, int64_t duration);
  /* As sluice_host's, for features that belong to one attempt. Valid until `handle` returns. [thread-safe] */
  const void *(*extension)(const struct sluice_context *context, const char *id);
} sluice_context;

/* ---- what the plugin gives ----------------------------------------------------------------------------------------- */

enum {
  /* `handle` may run on several threads at once in one instance. Without it each worker has an instance of its own. */
  SLUICE_HANDLER_CONCURRENT = 1u << 0,
  /* The handler declares no options and takes whatever the job has; the host cannot check them. */
  SLUICE_HANDLER_OPEN_OPTIONS = 1u << 1
};

typedef struct sluice_handler {
  uint32_t struct_size;
  uint32_t flags;
  const char *name; /* what `handler =` in a job names */
  const char *help; /* one or two sentences; may be NULL */
  const sluice_option *const *options;
  size_t option_count;
  /* Makes an instance. 0 on success with `*instance` set (NULL is a legal instance). Otherwise the host reports what
   * `fail` was given, and the job does not start. `options` is valid until the call returns. [control] */
  int32_t (*create)(const sluice_host *host, const sluice_option_value *const *options, size_t option_count,
                    void **instance, void (*fail)(void *sink, sluice_string why), void *sink);
  /* Ends an instance; called once for each successful create. [control] */
  void (*destroy)(void *instance);
  /* Works on a message and reports through the context. [worker] */
  void (*handle)(void *instance, const sluice_message *message, const sluice_context *context);
  /* A feature of the handler beyond this struct by its id; NULL when it has none. May itself be NULL. [control] */
  const void *(*extension)(const char *id);
} sluice_handler;

typedef struct sluice_plugin {
  uint32_t struct_size;
  uint32_t abi_major;
  uint64_t magic;
  uint32_t abi_minor; /* of the header the plugin was built with */
  uint32_t reserved;
  const char *name;
  const char *version;
  const sluice_handler *const *handlers;
  size_t handler_count;
} sluice_plugin;

/* The one symbol a plugin exports; the host finds it by name. */
extern SLUICE_EXPORT const sluice_plugin sluice_plugin_v1;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* SLUICE_ABI_H */
