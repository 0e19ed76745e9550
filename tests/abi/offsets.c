/*
 * Where every field of version 1.0 lies, on a 64-bit machine. This file is compiled against the current header and
 * against the frozen one. A line that fails here means that plugins in the field would break: put the field back, and
 * add at the end of the struct instead. Lines are only ever added.
 */
#include SLUICE_ABI_HEADER

#define OFFSET(type, field, at) _Static_assert(offsetof(type, field) == (at), #type "." #field " has moved")
/* Structs may grow at their end. */
#define SIZE(type, least) _Static_assert(sizeof(type) >= (least), #type " has shrunk")
#define EXACT_SIZE(type, size) _Static_assert(sizeof(type) == (size), #type " never changes")
#define VALUE(name, value) _Static_assert((name) == (value), #name " has changed")

EXACT_SIZE(sluice_string, 16);
OFFSET(sluice_string, data, 0);
OFFSET(sluice_string, size, 8);

SIZE(sluice_option, 40);
OFFSET(sluice_option, struct_size, 0);
OFFSET(sluice_option, type, 4);
OFFSET(sluice_option, flags, 8);
OFFSET(sluice_option, reserved, 12);
OFFSET(sluice_option, name, 16);
OFFSET(sluice_option, default_value, 24);
OFFSET(sluice_option, help, 32);

SIZE(sluice_option_value, 72);
OFFSET(sluice_option_value, struct_size, 0);
OFFSET(sluice_option_value, type, 4);
OFFSET(sluice_option_value, name, 8);
OFFSET(sluice_option_value, string, 24);
OFFSET(sluice_option_value, integer, 40);
OFFSET(sluice_option_value, number, 48);
OFFSET(sluice_option_value, items, 56);
OFFSET(sluice_option_value, item_count, 64);

SIZE(sluice_host, 48);
OFFSET(sluice_host, struct_size, 0);
OFFSET(sluice_host, abi_minor, 4);
OFFSET(sluice_host, host, 8);
OFFSET(sluice_host, job, 16);
OFFSET(sluice_host, log, 32);
OFFSET(sluice_host, extension, 40);

EXACT_SIZE(sluice_attribute, 32);
OFFSET(sluice_attribute, name, 0);
OFFSET(sluice_attribute, value, 16);

SIZE(sluice_message, 120);
OFFSET(sluice_message, struct_size, 0);
OFFSET(sluice_message, attempt, 4);
OFFSET(sluice_message, max_attempts, 8);
OFFSET(sluice_message, reserved, 12);
OFFSET(sluice_message, id, 16);
OFFSET(sluice_message, queue, 32);
OFFSET(sluice_message, body, 48);
OFFSET(sluice_message, content_type, 64);
OFFSET(sluice_message, group, 80);
OFFSET(sluice_message, sent_at, 96);
OFFSET(sluice_message, attributes, 104);
OFFSET(sluice_message, attribute_count, 112);

SIZE(sluice_outcome, 32);
OFFSET(sluice_outcome, struct_size, 0);
OFFSET(sluice_outcome, status, 4);
OFFSET(sluice_outcome, delay, 8);
OFFSET(sluice_outcome, reason, 16);

SIZE(sluice_context, 72);
OFFSET(sluice_context, struct_size, 0);
OFFSET(sluice_context, reserved, 4);
OFFSET(sluice_context, host, 8);
OFFSET(sluice_context, report, 16);
OFFSET(sluice_context, log, 24);
OFFSET(sluice_context, stop_requested, 32);
OFFSET(sluice_context, wait_for_stop, 40);
OFFSET(sluice_context, time_left, 48);
OFFSET(sluice_context, extend, 56);
OFFSET(sluice_context, extension, 64);

SIZE(sluice_handler, 72);
OFFSET(sluice_handler, struct_size, 0);
OFFSET(sluice_handler, flags, 4);
OFFSET(sluice_handler, name, 8);
OFFSET(sluice_handler, help, 16);
OFFSET(sluice_handler, options, 24);
OFFSET(sluice_handler, option_count, 32);
OFFSET(sluice_handler, create, 40);
OFFSET(sluice_handler, destroy, 48);
OFFSET(sluice_handler, handle, 56);
OFFSET(sluice_handler, extension, 64);

SIZE(sluice_plugin, 56);
OFFSET(sluice_plugin, struct_size, 0);
OFFSET(sluice_plugin, abi_major, 4);
OFFSET(sluice_plugin, magic, 8);
OFFSET(sluice_plugin, abi_minor, 16);
OFFSET(sluice_plugin, reserved, 20);
OFFSET(sluice_plugin, name, 24);
OFFSET(sluice_plugin, version, 32);
OFFSET(sluice_plugin, handlers, 40);
OFFSET(sluice_plugin, handler_count, 48);

VALUE(SLUICE_OPTION_STRING, 1);
VALUE(SLUICE_OPTION_INTEGER, 2);
VALUE(SLUICE_OPTION_NUMBER, 3);
VALUE(SLUICE_OPTION_BOOLEAN, 4);
VALUE(SLUICE_OPTION_DURATION, 5);
VALUE(SLUICE_OPTION_LIST, 6);
VALUE(SLUICE_OPTION_MAP, 7);
VALUE(SLUICE_OPTION_REQUIRED, 1u << 0);
VALUE(SLUICE_OPTION_SECRET, 1u << 1);
VALUE(SLUICE_LOG_TRACE, 0);
VALUE(SLUICE_LOG_DEBUG, 1);
VALUE(SLUICE_LOG_INFO, 2);
VALUE(SLUICE_LOG_WARN, 3);
VALUE(SLUICE_LOG_ERROR, 4);
VALUE(SLUICE_DONE, 0);
VALUE(SLUICE_RETRY, 1);
VALUE(SLUICE_SNOOZE, 2);
VALUE(SLUICE_REJECT, 3);
VALUE(SLUICE_DISCARD, 4);
VALUE(SLUICE_RELEASE, 5);
VALUE(SLUICE_FAULT, 6);
VALUE(SLUICE_HANDLER_CONCURRENT, 1u << 0);
VALUE(SLUICE_HANDLER_OPEN_OPTIONS, 1u << 1);

VALUE(SLUICE_ABI_MAJOR, 1);
VALUE(SLUICE_PLUGIN_MAGIC, UINT64_C(0x0100656369756c73));
_Static_assert(sizeof(SLUICE_PLUGIN_SYMBOL) == sizeof("sluice_plugin_v1"), "the symbol has changed");

/* An object file wants something in it. */
extern const int sluice_offsets_hold;
const int sluice_offsets_hold = 1;
