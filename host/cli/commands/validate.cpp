#include <filesystem>

#include "base/text/number.hpp"
#include "base/text/visible.hpp"
#include "host/cli/command.hpp"
#include "host/cli/options.hpp"
#include "host/cli/queue_session.hpp"
#include "host/cli/views/output.hpp"
#include "host/validate/validator.hpp"

namespace sluice::cli {

namespace {

using validate::CheckResult;
using validate::Finding;
using validate::Report;

/// What could not be validated at all.
constexpr int kExitNotTried = 2;

Colour colour_of_verdict(CheckResult::Verdict verdict) {
  return verdict == CheckResult::Verdict::failed   ? Colour::red
         : verdict == CheckResult::Verdict::warned ? Colour::yellow
                                                   : Colour::none;
}

std::string text_of(const CheckResult& check, const Screen& screen) {
  // What fails is to be seen among many that do not.
  const std::string verdict(check.verdict() == CheckResult::Verdict::failed ? "FAIL" : to_string(check.verdict()));
  std::string text = tinted(verdict, colour_of_verdict(check.verdict()), screen.colours) + "  " +
                     (check.handler.empty() ? "" : check.handler + ": ") + check.check;
  for (std::size_t i = 0; i < check.notes.size(); ++i) {
    text += (i == 0 ? ": " : "; ") + check.notes[i];
  }
  text += "\n";
  for (const Finding& finding : check.findings) {
    text += "      " + std::string(to_string(finding.level)) + ": " + finding.what +
            (finding.where.empty() ? "" : " (" + finding.where + ")") + "\n        why: " + finding.why +
            "\n        mend: " + finding.mend + "\n";
  }
  return wrapped(text, screen);
}

void write_check(JsonWriter& json, const CheckResult& check) {
  const auto finding = [](JsonWriter& writer, const Finding& one) {
    put_object(writer, "level", to_string(one.level), "what", one.what, "where", one.where, "why", one.why, "mend",
               one.mend);
  };
  put_object(json, "check", check.check, "handler", or_null(!check.handler.empty(), check.handler), "verdict",
             to_string(check.verdict()), "findings", array_of(check.findings, finding), "notes", check.notes, "figures",
             check.figures);
}

std::string json_of(const Report& report, bool good) {
  return json_line("file", report.file, "plugin", or_null(!report.name.empty(), report.name), "version",
                   or_null(!report.name.empty(), report.version), "good", good, "errors",
                   report.count(Finding::Level::error), "warnings", report.count(Finding::Level::warning), "seed",
                   report.seed, "seconds", figure(std::chrono::duration<double>(report.took).count(), 3), "checks",
                   array_of(report.checks, write_check));
}

std::string summary_of(const Report& report, bool good) {
  const std::string name = report.name.empty() ? "" : " (" + report.name + " " + report.version + ")";
  return visible(report.file) + name + ": " + (good ? "good" : "NOT good") + ", " +
         counted(report.checks.size(), "check") + ", " + counted(report.count(Finding::Level::error), "error") + ", " +
         counted(report.count(Finding::Level::warning), "warning") + "; --seed " + std::to_string(report.seed) +
         " repeats it\n";
}

OrExit<std::uint64_t> seed_of(const Arguments& arguments) {
  if (!arguments.has("seed")) {
    // Short enough to be typed.
    return SeededRandom().below(1'000'000);
  }
  const std::string text = arguments.get("seed");
  const auto seed = parse_number<std::uint64_t>(text);
  return seed ? OrExit<std::uint64_t>(*seed) : Exit::usage("--seed " + text + ": write a whole number, such as 7");
}

OrExit<validate::Request> request_of(const Arguments& arguments) {
  SLUICE_TRY(seed, seed_of(arguments));
  SLUICE_TRY(limit, arguments.duration("step-limit", isolation::kStepLimit, std::chrono::milliseconds(100),
                                       std::chrono::minutes(10)));
  validate::Request request{arguments.get("file"), arguments.get("handler"), {}, *seed, *limit};
  request.options.is_job = arguments.has("job");
  const std::string options = arguments.get(request.options.is_job ? "job" : "options");
  if (options.empty()) {
    return request;
  }
  std::error_code code;
  request.options.path = std::filesystem::absolute(options, code).string();
  const auto read = validate::read_options(request.options);
  if (!read) {
    return Exit(read.error(), kExitNotTried);
  }
  if (request.options.is_job && request.handler.empty()) {
    request.handler = read->handler;
  }
  return request;
}

Exit validate_plugin(const Arguments& arguments, Console& console) {
  SLUICE_TRY(request, request_of(arguments));
  const Screen screen = console.screen();
  const InterruptFlag interrupt;
  request->interrupt = interrupt.descriptor();
  const auto report = validate::validate(*request, [&console, &screen](const CheckResult& check) {
    if (console.shows_text()) {
      console.out(text_of(check, screen));
      console.flush();
    }
  });
  if (!report) {
    return {report.error().code() == ErrorCode::cancelled ? kExitInterrupted : kExitNotTried, report.error().message()};
  }
  const std::size_t counted_findings =
      report->count(Finding::Level::error) + (arguments.has("strict") ? report->count(Finding::Level::warning) : 0);
  const bool good = counted_findings == 0;
  console.out(console.shows_text() ? wrapped(summary_of(*report, good), screen) : json_of(*report, good));
  return good ? Exit::ok() : Exit::silent(kExitFailure);
}

}  // namespace

std::vector<Command> validate_commands() {
  return {{
      .name = "plugin validate",
      .summary = "Try to break a plugin, each check in a process of its own",
      .usage = "FILE [--handler NAME] [--options FILE | --job FILE] [--seed N] [--strict] [--step-limit TIME] "
               "[--output json|text]",
      .description =
          "Loads the plugin in child processes, and makes, calls and ends its handlers as a host would: a thousand "
          "instances, odd options, odd and random messages, 16 threads at once, stops in the middle. A crash or a hang "
          "is a finding. Each finding says what is wrong, why it matters, and the mend.\n\n"
          "Handlers really run, thousands of times. What they do to other systems, they do: give options of a test "
          "system, not a production job's. Without --options or --job, options that are required are made up.\n\n"
          "Ends with exit code 0 when there is no error (with --strict: no warning either), 1 when there is, and 2 "
          "when "
          "the plugin could not be tried.",
      .flags = joined(
          {required(alone({"file", "FILE", "the plugin, as the plain word FILE"})),
           {"handler", "NAME", "this one alone [default: all of them; with --job the job's]"},
           against("job", {"options", "FILE", "the handler's options, as TOML, as they stand below [job.options]"}),
           filled({"job", "FILE", "a job file, for its handler and its options"}),
           {"seed", "N", "repeat the run that had this seed [default: another one each time]"},
           {"strict", {}, "warnings fail too"},
           {"step-limit", "TIME", "what a call or any other step may take [default: 10s]"}},
          text_output_flags()),
      .examples = "sluice plugin validate build/greeter.so\n"
                  "sluice plugin validate build/greeter.so --job greeter.toml --seed 7 --json",
      .elsewhere = Output::text,
      .run = validate_plugin,
  }};
}

}  // namespace sluice::cli
