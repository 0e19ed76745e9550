#include "host/validate/validator.hpp"

#include <algorithm>
#include <filesystem>

#include "base/temporary_folder.hpp"
#include "base/text/joined.hpp"
#include "base/text/number.hpp"
#include "host/plugin/plugin_file.hpp"
#include "host/validate/probe.hpp"

namespace sluice::validate {
namespace {

using Level = Finding::Level;

/// What a child that ended in the middle says about the plugin.
Finding end_finding(const isolation::TrialEnd& end, const std::string& check) {
  const bool calls = end.step.starts_with("handle ");
  const std::string where = end.step.empty() ? "before it was loaded" : "in the step: " + end.step;
  if (end.step == "load") {
    return {
        "load",
        Level::error,
        "loading it " + end.cause,
        "",
        "code that runs at load time (constructors of globals, __attribute__((constructor))) runs in every host that "
        "sees the file",
        "move it into the handler's constructor, or build the global when it is first used"};
  }
  if (end.timed_out && calls) {
    return {"stop",
            Level::error,
            "it " + end.cause + ", though it was asked to stop",
            where,
            "a drain or a deployment waits for it until it is given up, and its message is delivered again",
            "look at context.stop_requested() in what takes long, or wait with context.wait_for_stop()"};
  }
  return {check,
          Level::error,
          "it " + end.cause,
          where,
          end.timed_out ? "a worker that hangs is lost to its job until the host restarts"
                        : "in a host this ends every job of the process, and the message comes again",
          end.timed_out
              ? "give everything that waits a time limit; on a machine that is busy, --step-limit gives it longer"
              : "run this check again under gdb or with a build that has -fsanitize=address; until it is mended, "
                "isolation = \"process\" keeps other jobs alive"};
}

/// Makes the checks, one child after the other, and gathers what they tell.
class Validation {
 public:
  Validation(const Request& request, const std::function<void(const CheckResult&)>& tell)
      : request_(request), tell_(tell) {
    report_.file = request.file;
    report_.seed = request.seed;
  }

  Result<Report> run() {
    const SystemClock clock;
    const SteadyTime began = clock.steady_now();
    auto scratch = TemporaryFolder::make("sluice-validate");
    if (!scratch) {
      return Error(ErrorCode::denied,
                   "no folder can be made for what the plugin writes: set TMPDIR to one that may be "
                   "written");
    }
    scratch_ = *std::move(scratch);
    SLUICE_PASS_ON(check_file());
    for (const std::string& handler : handlers_) {
      SLUICE_PASS_ON(check_handler(handler));
    }
    report_.took = clock.steady_now() - began;
    return std::move(report_);
  }

 private:
  Result<void> check_file();
  Result<void> check_handler(const std::string& handler);
  Result<void> choose_handlers();
  /// Runs a child and puts what it tells where it belongs.
  Result<void> run_child(const std::vector<std::string>& more, CheckResult& own);
  void file(Finding finding, CheckResult& own);
  /// Told by a check before.
  bool is_known(const Finding& finding, const std::string& handler) const;
  void add(CheckResult result) {
    tell_(result);
    report_.checks.push_back(std::move(result));
  }

  const Request& request_;
  const std::function<void(const CheckResult&)>& tell_;
  std::unique_ptr<TemporaryFolder> scratch_;  ///< for what a plugin writes where it stands
  Report report_;
  std::vector<std::string> handlers_;
  std::map<std::string, std::string> kinds_;  ///< of handlers, by their names
  std::vector<std::string> wrong_options_;
  std::string hindrance_;                      ///< why nothing that calls the handler can be tried; empty: it can
  std::map<std::string, CheckResult> others_;  ///< what checks found that is another one's, by its name
};

void Validation::file(Finding finding, CheckResult& own) {
  if (finding.check.empty() || finding.check == own.check) {
    finding.check = own.check;
    own.add(std::move(finding));
    return;
  }
  CheckResult& other = others_[finding.check];
  other.check = finding.check;
  other.handler = own.handler;
  other.add(std::move(finding));
}

bool Validation::is_known(const Finding& finding, const std::string& handler) const {
  const auto same = [&finding](const Finding& known) { return known.what == finding.what; };
  return std::any_of(report_.checks.begin(), report_.checks.end(), [&](const CheckResult& check) {
    return check.handler == handler && std::any_of(check.findings.begin(), check.findings.end(), same);
  });
}

Result<void> Validation::run_child(const std::vector<std::string>& more, CheckResult& own) {
  std::error_code code;
  std::vector<std::string> words{kChildWord, "--file", std::filesystem::absolute(request_.file, code).string()};
  words.insert(words.end(), more.begin(), more.end());
  if (!request_.options.path.empty()) {
    words.insert(words.end(), {request_.options.is_job ? "--job" : "--options", request_.options.path});
  }
  words.insert(words.end(),
               {"--seed", std::to_string(request_.seed), "--step-limit", std::to_string(request_.step_limit.count())});
  SLUICE_TRY(end, isolation::run_trial({std::move(words), scratch_->path(), request_.step_limit, request_.interrupt}));
  if (end->interrupted) {
    return Error(ErrorCode::cancelled, "interrupted; nothing of the plugin is left running");
  }
  for (const std::string& line : end->told) {
    const std::vector<std::string> fields = told_fields(line);
    const std::string& kind = fields.front();
    if (kind == kFound) {
      Finding finding = read_finding(fields);
      if (!is_known(finding, own.handler)) {
        file(std::move(finding), own);
      }
    } else if (kind == "note" && fields.size() > 1) {
      own.notes.push_back(fields[1]);
    } else if (kind == "figure" && fields.size() > 2) {
      own.figures[fields[1]] = parse_number<std::int64_t>(fields[2]).value_or(0);
    } else if (kind == "handler" && fields.size() > 2) {
      handlers_.push_back(fields[1]);
      kinds_[fields[1]] = fields[2];
    } else if (kind == "plugin" && fields.size() > 2) {
      report_.name = fields[1];
      report_.version = fields[2];
    } else if (kind == "options" && fields.size() > 1) {
      wrong_options_.push_back(fields[1]);
    } else if (kind == "hindrance" && fields.size() > 1) {
      hindrance_ = fields[1];
    }
  }
  if (!end->cause.empty()) {
    file(end_finding(*end, own.check), own);
    // What a plain instance, or a plain message, does is done again by every check.
    if (own.check == "create") {
      hindrance_ = "no instance can be made";
    } else if (own.check == "stop" || (end->timed_out && end->step.starts_with("handle "))) {
      hindrance_ = "it ends no plain message";
    }
  }
  return {};
}

Result<void> Validation::check_file() {
  std::error_code code;
  if (!std::filesystem::exists(request_.file, code)) {
    return Error(ErrorCode::not_found, request_.file + ": there is no such file");
  }
  CheckResult load{.check = "load", .handler = {}};
  if (const auto elf = plugin::ElfFile::open(request_.file); !elf) {
    load.add(refusal_finding("load", elf.error().message()));
    add(std::move(load));
    return {};
  }
  if (const auto read = plugin::read_plugin_file(request_.file); !read) {
    CheckResult table{.check = "table", .handler = {}};
    table.add(refusal_finding("table", read.error().message()));
    add(std::move(table));
    return {};
  }
  std::vector<std::string> more;
  if (!request_.handler.empty()) {
    more = {"--handler", request_.handler};
  }
  SLUICE_PASS_ON(run_child(more, load));
  const bool loaded = load.findings.empty();
  add(std::move(load));
  for (const char* name : {"table", "symbols", "libraries"}) {
    CheckResult& result = others_[name];
    result.check = name;
    if (loaded && (!report_.name.empty() || !result.findings.empty())) {
      add(std::move(result));
    }
  }
  others_.clear();
  return choose_handlers();
}

Result<void> Validation::choose_handlers() {
  if (!wrong_options_.empty()) {
    return Error(ErrorCode::invalid, joined(wrong_options_, "; "));
  }
  if (report_.name.empty() || request_.handler.empty()) {
    return {};
  }
  if (std::find(handlers_.begin(), handlers_.end(), request_.handler) == handlers_.end()) {
    return Error(ErrorCode::not_found,
                 request_.file + " has no handler \"" + request_.handler + "\"; it has: " + joined(handlers_));
  }
  handlers_ = {request_.handler};
  return {};
}

Result<void> Validation::check_handler(const std::string& handler) {
  hindrance_.clear();
  for (const Check& check : handler_checks()) {
    if (check.kind && std::to_string(static_cast<int>(*check.kind)) != kinds_[handler]) {
      continue;
    }
    CheckResult result{.check = std::string(check.name), .handler = handler};
    if (check.calls && !hindrance_.empty()) {
      result.skipped = true;
      result.notes.push_back("not tried: " + hindrance_);
    } else {
      SLUICE_PASS_ON(run_child({"--handler", handler, "--check", result.check}, result));
    }
    add(std::move(result));
  }
  // Every call is looked at for these.
  for (const char* name : {"outcomes", "exceptions"}) {
    CheckResult& result = others_[name];
    result.check = name;
    result.handler = handler;
    result.skipped = !hindrance_.empty();
    add(std::move(result));
  }
  others_.clear();
  return {};
}

}  // namespace

Result<Report> validate(const Request& request, const std::function<void(const CheckResult&)>& tell) {
  return Validation(request, tell).run();
}

}  // namespace sluice::validate
