/*
 * Where every field of "sluice.around/1" lies, on a 64-bit machine. Lines are only ever added: see offsets.c.
 */
#include <sluice/around.h>

#define OFFSET(type, field, at) _Static_assert(offsetof(type, field) == (at), #type "." #field " has moved")
#define SIZE(type, least) _Static_assert(sizeof(type) >= (least), #type " has shrunk")

SIZE(sluice_around_call, 64);
OFFSET(sluice_around_call, struct_size, 0);
OFFSET(sluice_around_call, reserved, 4);
OFFSET(sluice_around_call, cookie, 8);
OFFSET(sluice_around_call, body, 16);
OFFSET(sluice_around_call, content_type, 32);
OFFSET(sluice_around_call, attributes, 48);
OFFSET(sluice_around_call, attribute_count, 56);

SIZE(sluice_around, 24);
OFFSET(sluice_around, struct_size, 0);
OFFSET(sluice_around, reserved, 4);
OFFSET(sluice_around, enter, 8);
OFFSET(sluice_around, leave, 16);

_Static_assert(SLUICE_AROUND_GO_ON == 0 && SLUICE_AROUND_ANSWERED == 1, "an answer has another value");
_Static_assert(sizeof(SLUICE_AROUND_1) == sizeof("sluice.around/1"), "the id has changed");

/* An object file wants something in it. */
extern const int sluice_around_offsets_hold;
const int sluice_around_offsets_hold = 1;
