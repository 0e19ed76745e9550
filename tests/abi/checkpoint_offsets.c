/*
 * Where every field of "sluice.checkpoint/1" lies, on a 64-bit machine. Lines are only ever added: see offsets.c.
 */
#include <sluice/checkpoint.h>

#define OFFSET(type, field, at) _Static_assert(offsetof(type, field) == (at), #type "." #field " has moved")
#define SIZE(type, least) _Static_assert(sizeof(type) >= (least), #type " has shrunk")

SIZE(sluice_checkpoint, 32);
OFFSET(sluice_checkpoint, struct_size, 0);
OFFSET(sluice_checkpoint, reserved, 4);
OFFSET(sluice_checkpoint, host, 8);
OFFSET(sluice_checkpoint, last, 16);
OFFSET(sluice_checkpoint, store, 24);
_Static_assert(SLUICE_CHECKPOINT_LIMIT == 65536, "the limit has changed");
_Static_assert(sizeof(SLUICE_CHECKPOINT_1) == sizeof("sluice.checkpoint/1"), "the id has changed");

/* An object file wants something in it. */
extern const int sluice_checkpoint_offsets_hold;
const int sluice_checkpoint_offsets_hold = 1;
