/*
 * Where every field of "sluice.batch/1" lies, on a 64-bit machine. Lines are only ever added: see offsets.c.
 */
#include <sluice/batch.h>

#define OFFSET(type, field, at) _Static_assert(offsetof(type, field) == (at), #type "." #field " has moved")
#define SIZE(type, least) _Static_assert(sizeof(type) >= (least), #type " has shrunk")

SIZE(sluice_batch, 16);
OFFSET(sluice_batch, struct_size, 0);
OFFSET(sluice_batch, reserved, 4);
OFFSET(sluice_batch, handle, 8);
_Static_assert(sizeof(SLUICE_BATCH_1) == sizeof("sluice.batch/1"), "the id has changed");

/* An object file wants something in it. */
extern const int sluice_batch_offsets_hold;
const int sluice_batch_offsets_hold = 1;
