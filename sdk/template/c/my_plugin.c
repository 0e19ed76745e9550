/* Logs the body of each message in capitals. Plain C11: sluice/abi.h says what each field and function means. */
#include <ctype.h>
#include <sluice/abi.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  int64_t pause; /* nanoseconds */
  size_t suffix_size;
  char suffix[];
} my_plugin;

static const sluice_option suffix_option = {sizeof(sluice_option),         SLUICE_OPTION_STRING, 0, 0, "suffix", "!",
                                            "What to put behind the text."};
static const sluice_option pause_option = {
    sizeof(sluice_option), SLUICE_OPTION_DURATION, 0, 0, "pause", "0ms", "How long to rest before each message."};
static const sluice_option* const options[] = {&suffix_option, &pause_option};

static sluice_string text(const char* literal) {
  const sluice_string string = {literal, strlen(literal)};
  return string;
}

static const sluice_option_value* value_of(const char* name, const sluice_option_value* const* values, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (values[i]->name.size == strlen(name) && memcmp(values[i]->name.data, name, values[i]->name.size) == 0) {
      return values[i];
    }
  }
  return NULL;
}

/* Both options have a default, so the host hands over both. What they point to ends with this call: it is copied. */
static int32_t create(const sluice_host* host, const sluice_option_value* const* values, size_t count, void** instance,
                      void (*fail)(void* sink, sluice_string why), void* sink) {
  const sluice_option_value* const behind = value_of("suffix", values, count);
  const sluice_option_value* const rest = value_of("pause", values, count);
  my_plugin* self = NULL;
  (void)host;
  if (behind != NULL && rest != NULL) {
    self = malloc(sizeof(my_plugin) + behind->string.size);
  }
  if (self == NULL) {
    fail(sink, text("an option or memory is missing"));
    return 1;
  }
  self->pause = rest->integer;
  self->suffix_size = behind->string.size;
  if (self->suffix_size != 0) {
    memcpy(self->suffix, behind->string.data, self->suffix_size);
  }
  *instance = self;
  return 0;
}

static void destroy(void* instance) { free(instance); }

static void report(const sluice_context* context, sluice_status status, const char* reason) {
  const sluice_outcome outcome = {sizeof(sluice_outcome), status, -1, text(reason)};
  context->report(context, &outcome);
}

static void handle(void* instance, const sluice_message* message, const sluice_context* context) {
  const my_plugin* const self = instance;
  const size_t size = message->body.size + self->suffix_size;
  if (message->body.size == 0) {
    report(context, SLUICE_REJECT, "the body is empty");
    return;
  }
  if (context->wait_for_stop(context, self->pause) != 0) {
    report(context, SLUICE_RELEASE, "");
    return;
  }
  char* const line = malloc(size);
  if (line == NULL) {
    report(context, SLUICE_RETRY, "there is no memory");
    return;
  }
  for (size_t i = 0; i < message->body.size; ++i) {
    line[i] = (char)toupper((unsigned char)message->body.data[i]);
  }
  memcpy(line + message->body.size, self->suffix, self->suffix_size);
  context->log(context, SLUICE_LOG_INFO, (sluice_string){line, size});
  free(line);
  report(context, SLUICE_DONE, "");
}

/* CONCURRENT: one instance serves all workers of a job at once, so `handle` changes nothing in it. */
static const sluice_handler handler = {sizeof(sluice_handler),
                                       SLUICE_HANDLER_CONCURRENT,
                                       "my_plugin",
                                       "Logs the body of each message in capitals.",
                                       options,
                                       sizeof options / sizeof options[0],
                                       create,
                                       destroy,
                                       handle,
                                       NULL};
static const sluice_handler* const handlers[] = {&handler};

const sluice_plugin sluice_plugin_v1 = {sizeof(sluice_plugin),
                                        SLUICE_ABI_MAJOR,
                                        SLUICE_PLUGIN_MAGIC,
                                        SLUICE_ABI_MINOR,
                                        0,
                                        "my_plugin",
                                        "1.0.0",
                                        handlers,
                                        sizeof handlers / sizeof handlers[0]};
