#include <algorithm>
#include <utility>

#include "base/text/base64.hpp"
#include "base/text/utf8.hpp"
#include "host/cli/command.hpp"
#include "host/cli/queue_session.hpp"
#include "host/cli/views/output.hpp"
#include "host/work/idempotency_gate.hpp"

namespace sluice::cli {

namespace {

constexpr std::size_t kPageSize = 250;

OrExit<std::unique_ptr<queue::IdempotencyKeys>> open_keys(QueueSession& session) {
  return session.checked(session.queues().open_keys(session.queue()));
}

/// As it is shown.
struct ShownKey {
  const queue::StoredKey& stored;
};

void describe(const ShownKey& shown, operate::Fields& fields) {
  const queue::StoredKey& key = shown.stored;
  const auto clean = [](const std::string& text) { return clean_utf8(text, text.size() * 3, "?"); };
  const auto bytes = [&fields](const char* name, const std::string& text) {
    if (!is_utf8(text)) {
      fields.member(name, base64(text));
    }
  };
  fields.text("job", operate::names("JOB", 8), key.job);
  fields.member("key", key.key);
  fields.cell(operate::names("KEY", 20), clean(key.key));
  bytes("key_base64", key.key);
  fields.text("state", {"STATE"}, key.done ? "done" : "running", key.done ? Colour::none : Colour::yellow);
  fields.member("message", key.owner);
  fields.cell(operate::names("MESSAGE", 12), clean(key.owner));
  fields.time("until", {"UNTIL"}, key.until);
  if (key.done) {
    fields.member("result", key.result);
    fields.cell({"RESULT"}, clean(key.result));
    bytes("result_base64", key.result);
  }
}

/// Page by page, for nobody has all of them at any moment.
Exit list_keys(const Arguments& arguments, Console& console) {
  SLUICE_TRY(limit, arguments.count("limit", 100, 1'000'000));
  SLUICE_TRY(session, QueueSession::open(arguments));
  SLUICE_TRY(keys, open_keys(*session));
  RecordStream shown_keys("keys", {"JOB", "KEY", "STATE", "MESSAGE", "UNTIL"}, console);
  std::string cursor;
  std::size_t shown = 0;
  do {
    const std::size_t most = std::min(kPageSize, *limit - shown);
    SLUICE_TRY(page, session->checked((*keys)->list(arguments.get("job"), most, cursor, session->deadline())));
    for (const queue::StoredKey& key : page->keys) {
      shown_keys.add(ShownKey{key}, key.until);
    }
    shown_keys.flush();
    shown += page->keys.size();
    cursor = page->next;
  } while (!cursor.empty() && shown < *limit && console.writable());
  shown_keys.finish("more", !cursor.empty());
  if (console.shows_text() && shown == 0) {
    console.note("no idempotency keys in queue " + session->queue());
  } else if (!cursor.empty()) {
    console.note("there are more; raise --limit");
  }
  return Exit::ok();
}

/// The one key that is named, as it is kept.
OrExit<std::string> the_key(const Arguments& arguments) {
  std::string key = arguments.get("key");
  if (arguments.has("base64")) {
    auto bytes = decode_base64(key);
    if (!bytes) {
      return Exit::usage("\"" + key + "\" is not Base64; leave --base64 out for a key as it is written");
    }
    key = std::move(*bytes);
  }
  return work::kept_key(std::move(key));
}

Exit no_such_key(const QueueSession& session, const Arguments& arguments) {
  return Exit::failure("job " + arguments.get("job") + " on queue " + session.queue() +
                       " has no such key; `sluice keys list --queue " + session.queue() + "` shows them");
}

Exit show_key(const Arguments& arguments, Console& console) {
  SLUICE_TRY(key, the_key(arguments));
  SLUICE_TRY(session, QueueSession::open(arguments));
  SLUICE_TRY(keys, open_keys(*session));
  SLUICE_TRY(found, session->checked((*keys)->get(arguments.get("job"), *key, session->deadline())));
  if (!found->has_value()) {
    return no_such_key(*session, arguments);
  }
  const ShownKey shown{**found};
  return print(console.shows_json() ? json_of(shown, (*found)->until)
                                    : facts_of(operate::row_of(shown, (*found)->until), console.output_has_colour()),
               console);
}

Exit forget_key(const Arguments& arguments, Console& console) {
  SLUICE_TRY(key, the_key(arguments));
  if (!arguments.has("yes") && !console.interactive()) {
    return Exit::usage("forgetting a key lets a duplicate run; say --yes, as there is no terminal to ask on");
  }
  SLUICE_TRY(session, QueueSession::open(arguments));
  SLUICE_TRY(keys, open_keys(*session));
  SLUICE_PASS_ON(confirmed(arguments, console,
                           "Forget this key, so that a message with it runs again whatever was done with it?",
                           "forgotten"));
  SLUICE_TRY(forgotten, session->checked((*keys)->forget(arguments.get("job"), *key, session->deadline())));
  if (!*forgotten) {
    return no_such_key(*session, arguments);
  }
  return show_result(console, "forgotten\n", "forgotten", true);
}

constexpr Flag kJobFlag{.name = "job", .value = "JOB", .help = "the job whose key it is", .required = true};
constexpr Flag kKeyFlag{
    .name = "key", .value = "KEY", .help = "the key; `sluice keys list` shows them", .required = true, .alone = true};
constexpr Flag kBase64Flag{"base64", {}, "KEY is written in Base64, for one that is no text"};

// An outbox keeps none.
std::vector<Flag> with_key_flags(std::vector<Flag> own) {
  return with_store_flags(std::move(own), Outboxes::not_taken);
}

}  // namespace

std::vector<Command> key_commands() {
  return {
      {
          .name = "keys list",
          .summary = "List the idempotency keys of a queue's jobs",
          .usage = "[QUEUE] [--job JOB] [--limit N] [OPTION]...",
          .description =
              "Those that are running, with the message that has them and until when at most; and those that are "
              "done, until they are forgotten by themselves. On DynamoDB this reads the whole table, messages "
              "included.",
          .flags = with_key_flags(
              {filled({"job", "JOB", "of this job only"}), {"limit", "N", "at most so many [default: 100]"}}),
          .examples = "sluice keys list payments --job pay\n"
                      "sluice keys list payments --json | jq '.keys[] | select(.state == \"running\")'",
          .run = list_keys,
      },
      {
          .name = "keys show",
          .summary = "Show one idempotency key: who has it, and what its handler gave back",
          .usage = "[QUEUE] KEY --job JOB [OPTION]...",
          .description =
              "Prints a JSON object: running or done, the message that has or had the key, until when, and the "
              "result. A key of more than 1,024 bytes is kept as its first bytes and its SHA-256; either spelling "
              "finds it.",
          .flags = with_key_flags({kKeyFlag, kJobFlag, kBase64Flag}),
          .examples = "sluice keys show payments order-4711 --job pay",
          .run = show_key,
      },
      {
          .name = "keys forget",
          .summary = "Forget one idempotency key, so that a message with it runs again",
          .usage = "[QUEUE] KEY --job JOB [--yes] [OPTION]...",
          .description =
              "Done or running. Asks first when there is a terminal, and wants --yes when there is none. Whatever a "
              "message with this key has done stays done; the next one is no duplicate any more. Where it runs just "
              "now, another one may begin beside it, and of the two one alone is committed.",
          .flags = with_key_flags({kKeyFlag, kJobFlag, kBase64Flag, kYesFlag}),
          .examples = "sluice keys forget payments order-4711 --job pay --yes",
          .run = forget_key,
      },
  };
}

}  // namespace sluice::cli
