/*
 * Where every field of "sluice.health/1" lies, on a 64-bit machine. Lines are only ever added: see offsets.c.
 */
#include <sluice/health.h>

#define OFFSET(type, field, at) _Static_assert(offsetof(type, field) == (at), #type "." #field " has moved")
#define SIZE(type, least) _Static_assert(sizeof(type) >= (least), #type " has shrunk")

SIZE(sluice_health, 16);
OFFSET(sluice_health, struct_size, 0);
OFFSET(sluice_health, reserved, 4);
OFFSET(sluice_health, report, 8);
_Static_assert(sizeof(SLUICE_HEALTH_1) == sizeof("sluice.health/1"), "the id has changed");

/* An object file wants something in it. */
extern const int sluice_health_offsets_hold;
const int sluice_health_offsets_hold = 1;
