/*
 * Where every field of "sluice.effects/1" lies, on a 64-bit machine. Lines are only ever added: see offsets.c.
 */
#include <sluice/effects.h>

#define OFFSET(type, field, at) _Static_assert(offsetof(type, field) == (at), #type "." #field " has moved")
#define SIZE(type, least) _Static_assert(sizeof(type) >= (least), #type " has shrunk")
#define EXACT_SIZE(type, size) _Static_assert(sizeof(type) == (size), #type " never changes")
#define VALUE(name, value) _Static_assert((name) == (value), #name " has changed")

SIZE(sluice_effects_host, 8);
OFFSET(sluice_effects_host, struct_size, 0);
OFFSET(sluice_effects_host, store, 4);

SIZE(sluice_effects_handler, 8);
OFFSET(sluice_effects_handler, struct_size, 0);
OFFSET(sluice_effects_handler, only_sends, 4);

SIZE(sluice_effect_message, 136);
OFFSET(sluice_effect_message, struct_size, 0);
OFFSET(sluice_effect_message, priority, 4);
OFFSET(sluice_effect_message, queue, 8);
OFFSET(sluice_effect_message, id, 24);
OFFSET(sluice_effect_message, body, 40);
OFFSET(sluice_effect_message, content_type, 56);
OFFSET(sluice_effect_message, group, 72);
OFFSET(sluice_effect_message, dedup_id, 88);
OFFSET(sluice_effect_message, dedup_window, 104);
OFFSET(sluice_effect_message, delay, 112);
OFFSET(sluice_effect_message, attributes, 120);
OFFSET(sluice_effect_message, attribute_count, 128);

SIZE(sluice_effect_item, 128);
OFFSET(sluice_effect_item, struct_size, 0);
OFFSET(sluice_effect_item, action, 4);
OFFSET(sluice_effect_item, on_refusal, 8);
OFFSET(sluice_effect_item, reserved, 12);
OFFSET(sluice_effect_item, table, 16);
OFFSET(sluice_effect_item, item, 32);
OFFSET(sluice_effect_item, update, 48);
OFFSET(sluice_effect_item, condition, 64);
OFFSET(sluice_effect_item, names, 80);
OFFSET(sluice_effect_item, name_count, 88);
OFFSET(sluice_effect_item, values, 96);
OFFSET(sluice_effect_item, label, 112);

EXACT_SIZE(sluice_sql_value, 40);
OFFSET(sluice_sql_value, type, 0);
OFFSET(sluice_sql_value, reserved, 4);
OFFSET(sluice_sql_value, integer, 8);
OFFSET(sluice_sql_value, real, 16);
OFFSET(sluice_sql_value, bytes, 24);

SIZE(sluice_effect_sql, 64);
OFFSET(sluice_effect_sql, struct_size, 0);
OFFSET(sluice_effect_sql, on_refusal, 4);
OFFSET(sluice_effect_sql, statement, 8);
OFFSET(sluice_effect_sql, parameters, 24);
OFFSET(sluice_effect_sql, parameter_count, 32);
OFFSET(sluice_effect_sql, rows, 40);
OFFSET(sluice_effect_sql, label, 48);

SIZE(sluice_effects, 64);
OFFSET(sluice_effects, struct_size, 0);
OFFSET(sluice_effects, store, 4);
OFFSET(sluice_effects, host, 8);
OFFSET(sluice_effects, send, 16);
OFFSET(sluice_effects, write_item, 24);
OFFSET(sluice_effects, run_sql, 32);
OFFSET(sluice_effects, set_result, 40);
OFFSET(sluice_effects, first_result, 48);
OFFSET(sluice_effects, clear, 56);

VALUE(SLUICE_STORE_NONE, 0);
VALUE(SLUICE_STORE_SQLITE, 1);
VALUE(SLUICE_STORE_DYNAMODB, 2);
VALUE(SLUICE_PRIORITY_LOW, -1);
VALUE(SLUICE_PRIORITY_NORMAL, 0);
VALUE(SLUICE_PRIORITY_HIGH, 1);
VALUE(SLUICE_PRIORITY_CRITICAL, 2);
VALUE(SLUICE_REFUSED_RETRY, 0);
VALUE(SLUICE_REFUSED_REJECT, 1);
VALUE(SLUICE_ITEM_PUT, 1);
VALUE(SLUICE_ITEM_UPDATE, 2);
VALUE(SLUICE_ITEM_DELETE, 3);
VALUE(SLUICE_ITEM_CHECK, 4);
VALUE(SLUICE_SQL_NULL, 0);
VALUE(SLUICE_SQL_INTEGER, 1);
VALUE(SLUICE_SQL_REAL, 2);
VALUE(SLUICE_SQL_TEXT, 3);
VALUE(SLUICE_SQL_BLOB, 4);
_Static_assert(sizeof(SLUICE_EFFECTS_1) == sizeof("sluice.effects/1"), "the id has changed");

/* An object file wants something in it. */
extern const int sluice_effect_offsets_hold;
const int sluice_effect_offsets_hold = 1;
