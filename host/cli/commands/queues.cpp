#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/text/json_writer.hpp"
#include "host/cli/command.hpp"
#include "host/cli/host_file.hpp"
#include "host/cli/queue_session.hpp"
#include "host/cli/views/output.hpp"
#include "host/work/job_queues.hpp"

namespace sluice::cli {

namespace {

/// A queue that somebody knows.
struct Known {
  std::string name;
  std::string store;  ///< of [stores.NAME]; empty: the default one
  std::vector<std::string> jobs;
  bool configured = false;    ///< the host file has a section for it
  bool has_messages = false;  ///< or has had some
};

class Survey {
 public:
  explicit Survey(QueueSession& session) : session_(session), host_(session.host()) {}

  std::vector<Known> run() {
    for (const auto& [name, settings] : host_.queues) {
      queue(name).configured = true;
    }
    for (const config::JobConfig& job : config::load_job_files(host_, config::process_environment()).jobs) {
      for (const config::WeightedQueue& drawn : work::queues_of(job)) {
        queue(drawn.name).jobs.push_back(job.name);
      }
    }
    ask("");
    for (const auto& [name, store] : host_.stores) {
      ask(name);
    }
    std::vector<Known> all;
    for (auto& [key, known] : known_) {
      all.push_back(std::move(known));
    }
    return all;
  }

  const std::vector<std::string>& failures() const { return failures_; }

 private:
  Known& queue(const std::string& name) { return entry(name, host_.queue(name).store); }

  Known& entry(const std::string& name, const std::string& store) {
    Known& known = known_[{name, store}];
    known.name = name;
    known.store = store;
    return known;
  }

  void ask(const std::string& store) {
    const auto made = session_.queues().made_by_messages_in(store, session_.deadline());
    if (made.has_error()) {
      failures_.push_back(made.error().message());
      return;
    }
    for (const std::string& name : *made) {
      entry(name, store).has_messages = true;
    }
  }

  QueueSession& session_;
  const config::HostConfig& host_;
  std::map<std::pair<std::string, std::string>, Known> known_;
  std::vector<std::string> failures_;
};

const config::StoreConfig& store_of(const config::HostConfig& host, const Known& known) {
  return known.store.empty() ? host.store : host.stores.at(known.store);
}

/// What it lies in: a kind of store, or of an application's database.
std::string kind_of(const config::HostConfig& host, const Known& known) {
  if (const config::OutboxConfig* outbox = host.outbox(known.name)) {
    return outbox->kind == config::OutboxKind::postgres ? "postgres"
           : outbox->kind == config::OutboxKind::mysql  ? "mysql"
                                                        : "dynamodb";
  }
  return store_of(host, known).kind == config::StoreKind::sqlite ? "sqlite" : "dynamodb";
}

std::string store_name(const config::HostConfig& host, const Known& known) {
  return host.outbox(known.name) != nullptr ? "(outbox)" : known.store.empty() ? "(default)" : known.store;
}

/// The table or the file that it lies in.
std::string place_of(const config::HostConfig& host, const Known& known) {
  if (const config::OutboxConfig* outbox = host.outbox(known.name)) {
    return "table " + (outbox->schema.empty() ? "" : outbox->schema + ".") + outbox->table;
  }
  const config::StoreConfig& store = store_of(host, known);
  return store.kind == config::StoreKind::sqlite ? store.path : "table " + host.queue(known.name).table;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    text += (text.empty() ? "" : ", ") + word;
  }
  return text.empty() ? "-" : text;
}

std::string as_text(const config::HostConfig& host, const std::vector<Known>& all, bool colours) {
  TextTable table({{.title = "QUEUE"}, {.title = "STORE"}, {.title = "LIES IN"}, {.title = "JOBS"}}, colours);
  for (const Known& known : all) {
    table.add({known.name,
               store_name(host, known),
               place_of(host, known),
               {joined(known.jobs), known.jobs.empty() ? Colour::yellow : Colour::none}});
  }
  return table.take();
}

std::string as_json(const config::HostConfig& host, const std::vector<Known>& all) {
  JsonWriter json(JsonWriter::Layout::indented);
  json.begin_array();
  for (const Known& known : all) {
    json.begin_object();
    json.member("queue", known.name);
    json.member("store", known.store);
    json.member("kind", kind_of(host, known));
    json.member("place", place_of(host, known));
    json.key("jobs");
    json.begin_array();
    for (const std::string& job : known.jobs) {
      json.value(job);
    }
    json.end_array();
    json.member("in_host_file", known.configured);
    json.member("made_by_messages", known.has_messages);
    json.end_object();
  }
  json.end_array();
  return json.take_line();
}

Exit queues(const Arguments& arguments, Console& console) {
  SLUICE_TRY(output, arguments.output());
  SLUICE_TRY(session, QueueSession::open(arguments, QueueSession::Queue::optional));
  if (Exit wrong = check_job_files(session->host()); wrong.code() != kExitOk) {
    return wrong;
  }
  Survey survey(*session);
  const std::vector<Known> all = survey.run();
  console.out(*output == Output::text ? as_text(session->host(), all, console.output_has_colour())
                                      : as_json(session->host(), all));
  if (all.empty()) {
    console.flush();
    console.note("no job, host file or message knows a queue yet");
  }
  return survey.failures().empty() ? Exit::ok() : Exit(kExitFailure, survey.failures());
}

}  // namespace

Command queues_command() {
  return {
      .name = "queues",
      .group = "Queues",
      .summary = "List the queues that jobs, the host file or messages know",
      .usage = "[--config FILE] [OPTION]...",
      .description =
          "Of each: the store that it lies in, the file or table there, and the jobs that work on it. The queues of a "
          "SQLite file are all listed, whoever made them; of tables those that a job or the host file names. `sluice "
          "stats` counts their messages.",
      .flags = with_store_flags({}),
      .examples =
          "sluice queues\n"
          "sluice queues --json | jq -r '.[] | select(.jobs == []) | .queue'",
      .run = queues,
  };
}

}  // namespace sluice::cli
