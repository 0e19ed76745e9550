/* A plugin for the tests of `sluice check` and `sluice plugins`, written against the C header alone. */
#include <stddef.h>
#include <string.h>

#include "sluice/abi.h"

static const sluice_option greeting = {sizeof(sluice_option), SLUICE_OPTION_STRING, 0, 0,
                                       "greeting", "hello", "What is said"};
static const sluice_option token = {sizeof(sluice_option), SLUICE_OPTION_STRING, SLUICE_OPTION_SECRET, 0,
                                    "token", "hidden-default", "Who says it"};
static const sluice_option port = {sizeof(sluice_option), SLUICE_OPTION_INTEGER, SLUICE_OPTION_REQUIRED, 0,
                                   "port", NULL, "Where to"};
static const sluice_option *const options[] = {&greeting, &token, &port};

/* Refuses the greeting "no", as only a handler itself can. */
static int32_t create(const sluice_host *host, const sluice_option_value *const *values, size_t count, void **instance,
                      void (*fail)(void *sink, sluice_string why), void *sink) {
  (void)host;
  *instance = NULL;
  for (size_t index = 0; index < count; ++index) {
    const sluice_option_value *value = values[index];
    if (value->name.size == 8 && memcmp(value->name.data, "greeting", 8) == 0 && value->string.size == 2 &&
        memcmp(value->string.data, "no", 2) == 0) {
      const sluice_string why = {"no is no greeting", 17};
      fail(sink, why);
      return 1;
    }
  }
  return 0;
}

static void destroy(void *instance) { (void)instance; }

static void handle(void *instance, const sluice_message *message, const sluice_context *context) {
  const sluice_outcome outcome = {sizeof(sluice_outcome), SLUICE_DONE, -1, {NULL, 0}};
  (void)instance;
  (void)message;
  context->report(context, &outcome);
}

static const sluice_handler greet = {sizeof(sluice_handler), SLUICE_HANDLER_CONCURRENT, "greet", "Greets.", options, 3,
                                     create, destroy, handle, NULL};
static const sluice_handler *const handlers[] = {&greet};

__attribute__((visibility("default"))) const sluice_plugin sluice_plugin_v1 = {
    sizeof(sluice_plugin), SLUICE_ABI_MAJOR, SLUICE_PLUGIN_MAGIC, SLUICE_ABI_MINOR, 0, "fixture", "1.2.3", handlers, 1};
