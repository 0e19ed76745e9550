#include <algorithm>
#include <optional>
#include <utility>

#include "base/text/base64.hpp"
#include "base/text/json_writer.hpp"
#include "base/text/utf8.hpp"
#include "base/timestamp.hpp"
#include "host/cli/command.hpp"
#include "host/cli/filter_arguments.hpp"
#include "host/cli/queue_session.hpp"
#include "host/cli/views/output.hpp"
#include "host/work/message_key.hpp"

// The idempotency keys of a queue's jobs: `sluice keys list`, `show` and `forget`.
namespace sluice::cli {

namespace {

constexpr std::size_t kDefaultLimit = 100;
constexpr std::size_t kMaxLimit = 1'000'000;
constexpr std::size_t kPageSize = 250;
constexpr std::size_t kWidestKey = 60;

struct Opened {
  QueueSession session;
  std::unique_ptr<queue::IdempotencyKeys> keys;
};

OrExit<Opened> open(const Arguments& arguments) {
  SLUICE_TRY(session, QueueSession::open(arguments));
  auto keys = session->queues().open_keys(session->queue());
  if (keys.has_error()) {
    return session->failure(keys.error());
  }
  return Opened{std::move(*session), std::move(*keys)};
}

void write(JsonWriter& json, const queue::StoredKey& key) {
  json.begin_object();
  json.member("job", key.job);
  json.member("key", key.key);
  if (!is_utf8(key.key)) {
    json.member("key_base64", base64(key.key));
  }
  json.member("state", key.done ? "done" : "running");
  json.member("message", key.owner);
  json.member("until", format_timestamp(key.until));
  if (key.done) {
    json.member("result", key.result);
    if (!is_utf8(key.result)) {
      json.member("result_base64", base64(key.result));
    }
  }
  json.end_object();
}

/// Shows keys page by page, for nobody has all of them at any moment.
class KeyWriter {
 public:
  KeyWriter(Output output, Console& console)
      : output_(output),
        console_(console),
        table_({{.title = "JOB"},
                {.title = "KEY", .widest = kWidestKey},
                {.title = "STATE"},
                {.title = "MESSAGE", .widest = kWidestKey},
                {.title = "UNTIL"}},
               console.output_has_colour()) {
    json_.begin_object();
    json_.key("keys");
    json_.begin_array();
  }

  void add(const std::vector<queue::StoredKey>& keys) {
    for (const queue::StoredKey& key : keys) {
      if (output_ == Output::json) {
        write(json_, key);
      } else {
        table_.add({key.job, clean_utf8(key.key, key.key.size() * 3, "?"),
                    key.done ? TextTable::Cell("done") : TextTable::Cell("running", Colour::yellow),
                    clean_utf8(key.owner, key.owner.size() * 3, "?"), format_timestamp(key.until)});
      }
    }
    console_.out(output_ == Output::json ? json_.take_text() : table_.take());
    console_.flush();
  }

  void finish(bool more) {
    if (output_ == Output::json) {
      json_.end_array();
      json_.member("more", more);
      json_.end_object();
      console_.out(json_.take_line());
    }
  }

 private:
  const Output output_;
  Console& console_;
  TextTable table_;
  JsonWriter json_{JsonWriter::Layout::indented};
};

Exit list_keys(const Arguments& arguments, Console& console) {
  const auto output = arguments.output();
  const auto limit = arguments.count("limit", kDefaultLimit, kMaxLimit);
  if (output.has_error() || limit.has_error()) {
    return output.has_error() ? output.error() : limit.error();
  }
  SLUICE_TRY(opened, open(arguments));
  KeyWriter writer(*output, console);
  std::string cursor;
  std::size_t shown = 0;
  do {
    const auto page = opened->keys->list(arguments.get("job"), std::min(kPageSize, *limit - shown), cursor,
                                         opened->session.deadline());
    if (page.has_error()) {
      return opened->session.failure(page.error());
    }
    writer.add(page->keys);
    shown += page->keys.size();
    cursor = page->next;
  } while (!cursor.empty() && shown < *limit && console.writable());
  writer.finish(!cursor.empty());
  if (*output == Output::text && shown == 0) {
    console.note("no idempotency keys in queue " + opened->session.queue());
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

Exit no_such_key(const Opened& opened, const Arguments& arguments) {
  return Exit::failure("job " + arguments.get("job") + " on queue " + opened.session.queue() +
                       " has no such key; `sluice keys list --queue " + opened.session.queue() + "` shows them");
}

Exit show_key(const Arguments& arguments, Console& console) {
  SLUICE_TRY(output, arguments.output());
  SLUICE_TRY(key, the_key(arguments));
  SLUICE_TRY(opened, open(arguments));
  const auto found = opened->keys->get(arguments.get("job"), *key, opened->session.deadline());
  if (found.has_error()) {
    return opened->session.failure(found.error());
  }
  if (!found->has_value()) {
    return no_such_key(*opened, arguments);
  }
  const queue::StoredKey& stored = **found;
  if (*output == Output::json) {
    JsonWriter json(JsonWriter::Layout::indented);
    write(json, stored);
    console.out(json.take_line());
    return Exit::ok();
  }
  TextTable table({{}, {}}, console.output_has_colour());
  table.add({"job", stored.job});
  table.add({"key", clean_utf8(stored.key, stored.key.size() * 3, "?")});
  table.add({"state", stored.done ? "done" : "running"});
  table.add({"message", clean_utf8(stored.owner, stored.owner.size() * 3, "?")});
  table.add({"until", format_timestamp(stored.until)});
  if (stored.done) {
    table.add({"result", clean_utf8(stored.result, stored.result.size() * 3, "?")});
  }
  console.out(table.take());
  return Exit::ok();
}

Exit forget_key(const Arguments& arguments, Console& console) {
  SLUICE_TRY(output, arguments.output());
  SLUICE_TRY(key, the_key(arguments));
  if (!arguments.has("yes") && !console.interactive()) {
    return Exit::usage("forgetting a key lets a duplicate run; say --yes, as there is no terminal to ask on");
  }
  SLUICE_TRY(opened, open(arguments));
  if (!arguments.has("yes") &&
      !console.confirm("Forget this key, so that a message with it runs again whatever was done with it?")) {
    console.note("nothing was changed");
    return Exit::ok();
  }
  const auto forgotten = opened->keys->forget(arguments.get("job"), *key, opened->session.deadline());
  if (forgotten.has_error()) {
    return opened->session.failure(forgotten.error());
  }
  if (!*forgotten) {
    return no_such_key(*opened, arguments);
  }
  if (*output == Output::json) {
    JsonWriter json(JsonWriter::Layout::indented);
    json.begin_object();
    json.member("forgotten", true);
    json.end_object();
    console.out(json.take_line());
  } else {
    console.out("forgotten\n");
  }
  return Exit::ok();
}

Flag job_flag() { return {.name = "job", .value = "JOB", .help = "the job whose key it is", .required = true}; }

Flag key_flag() {
  return {.name = "key", .value = "KEY", .help = "the key; `sluice keys list` shows them", .required = true};
}

// An outbox keeps none.
std::vector<Flag> with_key_flags(std::vector<Flag> own) {
  return with_store_flags(std::move(own), Outboxes::not_taken);
}

Flag base64_flag() { return {.name = "base64", .help = "KEY is written in Base64, for one that is no text"}; }

}  // namespace

Command keys_list_command() {
  return {
      .name = "keys list",
      .group = "Queues",
      .summary = "List the idempotency keys of a queue's jobs",
      .usage = "[QUEUE] [--job JOB] [--limit N] [OPTION]...",
      .description =
          "Those that are running, with the message that has them and until when at most; and those that are done, "
          "until they are forgotten by themselves. On DynamoDB this reads the whole table, messages included.",
      .flags = with_key_flags({{.name = "job", .value = "JOB", .help = "of this job only"},
                               {.name = "limit", .value = "N", .help = "at most so many [default: 100]"}}),
      .positional = {"queue"},
      .examples =
          "sluice keys list payments --job pay\n"
          "sluice keys list payments --json | jq '.keys[] | select(.state == \"running\")'",
      .run = list_keys,
  };
}

Command keys_show_command() {
  return {
      .name = "keys show",
      .group = "Queues",
      .summary = "Show one idempotency key: who has it, and what its handler gave back",
      .usage = "KEY --job JOB [OPTION]...",
      .description =
          "Prints a JSON object: running or done, the message that has or had the key, until when, and the result. A "
          "key of more than 1,024 bytes is kept as its first bytes and its SHA-256; either spelling finds it.",
      .flags = with_key_flags({key_flag(), job_flag(), base64_flag()}),
      .positional = {"key"},
      .examples = "sluice keys show order-4711 --job pay --queue payments",
      .run = show_key,
  };
}

Command keys_forget_command() {
  return {
      .name = "keys forget",
      .group = "Queues",
      .summary = "Forget one idempotency key, so that a message with it runs again",
      .usage = "KEY --job JOB [--yes] [OPTION]...",
      .description =
          "Done or running. Asks first when there is a terminal, and wants --yes when there is none. Whatever a "
          "message "
          "with this key has done stays done; the next one is no duplicate any more. Where it runs just now, another "
          "one may begin beside it, and of the two one alone is committed.",
      .flags = with_key_flags({key_flag(), job_flag(), base64_flag(), {.name = "yes", .help = "do not ask"}}),
      .positional = {"key"},
      .examples = "sluice keys forget order-4711 --job pay --queue payments --yes",
      .run = forget_key,
  };
}

}  // namespace sluice::cli
