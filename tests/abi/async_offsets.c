/*
 * Where every field of "sluice.async/1" lies, on a 64-bit machine. Lines are only ever added: see offsets.c.
 */
#include <sluice/async.h>

#define OFFSET(type, field, at) _Static_assert(offsetof(type, field) == (at), #type "." #field " has moved")
#define SIZE(type, least) _Static_assert(sizeof(type) >= (least), #type " has shrunk")
#define EXACT_SIZE(type, size) _Static_assert(sizeof(type) == (size), #type " never changes")
#define VALUE(name, value) _Static_assert((name) == (value), #name " has changed")

EXACT_SIZE(sluice_token, 8);
EXACT_SIZE(sluice_answer, 4);
VALUE(SLUICE_ACCEPTED, 0);
VALUE(SLUICE_TWICE, 1);
VALUE(SLUICE_STALE, 2);
VALUE(SLUICE_NO_MEMORY, 3);

SIZE(sluice_async_host, 72);
OFFSET(sluice_async_host, struct_size, 0);
OFFSET(sluice_async_host, reserved, 4);
OFFSET(sluice_async_host, host, 8);
OFFSET(sluice_async_host, complete, 16);
OFFSET(sluice_async_host, log, 24);
OFFSET(sluice_async_host, stop_requested, 32);
OFFSET(sluice_async_host, time_left, 40);
OFFSET(sluice_async_host, extend, 48);
OFFSET(sluice_async_host, extension, 56);
OFFSET(sluice_async_host, call_after, 64);

SIZE(sluice_async_context, 32);
OFFSET(sluice_async_context, struct_size, 0);
OFFSET(sluice_async_context, reserved, 4);
OFFSET(sluice_async_context, token, 8);
OFFSET(sluice_async_context, async, 16);
OFFSET(sluice_async_context, context, 24);

SIZE(sluice_async, 16);
OFFSET(sluice_async, struct_size, 0);
OFFSET(sluice_async, reserved, 4);
OFFSET(sluice_async, begin, 8);
_Static_assert(sizeof(SLUICE_ASYNC_1) == sizeof("sluice.async/1"), "the id has changed");

/* An object file wants something in it. */
extern const int sluice_async_offsets_hold;
const int sluice_async_offsets_hold = 1;
