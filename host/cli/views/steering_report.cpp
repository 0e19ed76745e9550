#include "host/cli/views/steering_report.hpp"

#include <utility>

#include "base/text/json_writer.hpp"
#include "base/text/visible.hpp"
#include "host/cli/queue_names.hpp"

namespace sluice::cli {

namespace {

void write_names(JsonWriter& json, std::string_view name, const std::vector<std::string>& labels) {
  json.key(name);
  json.begin_array();
  for (const std::string& label : labels) {
    json.value(label);
  }
  json.end_array();
}

std::string hosts_text(const std::vector<std::string>& labels) {
  return std::to_string(labels.size()) + (labels.size() == 1 ? " host: " : " hosts: ") + listed(labels);
}

void show_compliance(const std::string& what, const operate::Compliance& compliance, Output output, Console& console) {
  if (output == Output::json) {
    JsonWriter json(JsonWriter::Layout::indented);
    json.begin_object();
    json.member("what", what);
    write_names(json, "obeyed_by", compliance.obeyed());
    write_names(json, "waited_for", compliance.waited_for());
    json.end_object();
    console.out(json.take_line());
    return;
  }
  const bool nobody = compliance.obeyed().empty() && compliance.waited_for().empty();
  console.out(visible(what + (nobody                        ? "; no host runs now, those that start obey it"
                              : compliance.obeyed().empty() ? ""
                                                            : "; obeyed by " + hosts_text(compliance.obeyed()))) +
              "\n");
}

Exit follow(const Arguments& arguments, FleetSession& session, std::vector<fleet::Given> given, const std::string& what,
            Console& console) {
  SLUICE_TRY(output, arguments.output());
  SLUICE_TRY(compliance, session.follow(std::move(given)));
  show_compliance(what, *compliance, *output, console);
  if (!compliance->waited_for().empty()) {
    return Exit::failure("it is written, but not obeyed yet by " + hosts_text(compliance->waited_for()) +
                         "; they do when they look at their store again, `sluice hosts` shows when they last did");
  }
  return Exit::ok();
}

}  // namespace

Flag reset_flag(std::string_view help) { return {.name = "reset", .value = {}, .help = help}; }

std::vector<Flag> with_thing_flags(std::vector<Flag> own) {
  own.insert(own.begin(), {{.name = "name", .value = "QUEUE-OR-JOB", .help = "whichever has this name"},
                           {.name = "job", .value = "JOB", .help = "this job, on all hosts"}});
  own = with_store_flags(std::move(own));
  for (Flag& flag : own) {
    if (flag.name == "queue") {
      flag.help = "all jobs of this queue";
    }
  }
  return own;
}

OrExit<fleet::Directive> read_thing(const Arguments& arguments, const operate::KnownNames& names, fleet::Wish wish) {
  const int given = static_cast<int>(arguments.has("name")) + static_cast<int>(arguments.has("job")) +
                    static_cast<int>(arguments.has("queue"));
  if (given != 1) {
    return Exit::usage(given == 0 ? "nothing is named; write the name of a queue or a job"
                                  : "a name, --job and --queue exclude each other; give one");
  }
  auto meant = arguments.has("job")     ? names.job(wish, arguments.get("job"))
               : arguments.has("queue") ? names.queue(wish, arguments.get("queue"))
                                        : names.thing(wish, arguments.get("name"));
  if (!meant) {
    return Exit(meant.error().code() == ErrorCode::conflict ? kExitUsage : kExitFailure, meant.error().message());
  }
  return std::move(*meant);
}

Exit give_wish(const Arguments& arguments, FleetSession& session, const fleet::Directive& wish, Console& console) {
  std::string queue = wish.target == fleet::Target::queue ? wish.name : std::string();
  if (wish.target == fleet::Target::job) {
    queue = session.names().queue_of_job(wish.name);
  }
  SLUICE_TRY(given, session.give(wish, queue));
  return follow(arguments, session, std::move(*given), wish.text(), console);
}

Exit take_back(const Arguments& arguments, FleetSession& session, fleet::Wish wish, const std::string& name,
               const std::string& nothing, Console& console) {
  SLUICE_TRY(taken, session.reset(wish, name));
  if (taken->empty()) {
    return Exit::failure(nothing);
  }
  std::string what;
  for (const fleet::Given& one : *taken) {
    const std::string text = one.directive.text();
    if (what.find(text) == std::string::npos) {  // once, though it stood on several boards
      what += (what.empty() ? "taken back: " : ", ") + text;
    }
  }
  return follow(arguments, session, std::move(*taken), what, console);
}

void show(const OrderReport& report, Output output, Console& console) {
  if (output == Output::text) {
    console.out(visible((report.host.empty() ? "" : report.host + ": ") + report.text) + "\n");
    return;
  }
  JsonWriter json(JsonWriter::Layout::indented);
  json.begin_object();
  json.member("what", report.order);
  json.member("host", report.host);
  json.member("text", report.text);
  json.end_object();
  console.out(json.take_line());
}

Exit show_answers(const std::string& order, const operate::Compliance& compliance, Output output, Console& console) {
  std::vector<std::string> refusals;
  JsonWriter json(JsonWriter::Layout::indented);
  json.begin_object();
  json.member("what", order);
  json.key("answers");
  json.begin_array();
  for (const auto& [host, answer] : compliance.answers()) {
    json.begin_object();
    json.member("host", host);
    json.member("done", answer.done);
    json.member("text", answer.text);
    json.end_object();
    if (!answer.done) {
      refusals.push_back(host + ": " + answer.text);
    } else if (output == Output::text) {
      console.out(visible(host + ": " + answer.text) + "\n");
    }
  }
  json.end_array();
  write_names(json, "waited_for", compliance.waited_for());
  json.end_object();
  if (output == Output::json) {
    console.out(json.take_line());
  }
  if (compliance.done_by_somebody() && compliance.waited_for().empty()) {
    return Exit::ok();  // of those who were meant; others say that they were not
  }
  if (!compliance.waited_for().empty()) {
    refusals.push_back("it is written, but not seen yet by " + hosts_text(compliance.waited_for()) +
                       "; within ten minutes they still carry it out");
  }
  return refusals.empty() ? Exit::failure("no host runs that could carry it out") : Exit(kExitFailure, refusals);
}

OrExit<const runtime::LocalHost*> find_local(const runtime::LocalHosts& local, const std::string& word) {
  const runtime::LocalHost* found = nullptr;
  std::vector<std::string> labels;
  for (const runtime::LocalHost& host : local.hosts) {
    if (word.empty() || host.record.is_called(word)) {
      found = &host;
      labels.push_back(host.record.label());
    }
  }
  if (labels.size() > 1) {
    return Exit::usage(
        (word.empty() ? std::string("several hosts run here") : "\"" + word + "\" is the name of several hosts") +
        "; name one of " + listed(labels));
  }
  return found;
}

}  // namespace sluice::cli
