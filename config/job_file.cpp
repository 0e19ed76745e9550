#include <charconv>
#include <cmath>
#include <filesystem>
#include <string_view>
#include <utility>

#include "config/document.hpp"
#include "config/reader.hpp"
#include "config/sections.hpp"
#include "config/syntax.hpp"

namespace sluice::config {

namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

constexpr std::array<Choice<Source>, 2> kSources{{{"standard", Source::standard}, {"dlq", Source::dlq}}};
constexpr std::array<Choice<Backoff>, 3> kBackoffs{
    {{"exponential", Backoff::exponential}, {"linear", Backoff::linear}, {"constant", Backoff::constant}}};
constexpr std::array<Choice<Jitter>, 3> kJitters{
    {{"full", Jitter::full}, {"equal", Jitter::equal}, {"none", Jitter::none}}};
constexpr std::array<Choice<DeadLetterPolicy>, 3> kPolicies{
    {{"move", DeadLetterPolicy::move}, {"discard", DeadLetterPolicy::discard}, {"keep", DeadLetterPolicy::keep}}};
constexpr std::array<Choice<Isolation>, 2> kIsolations{
    {{"thread", Isolation::thread}, {"process", Isolation::process}}};

constexpr std::uint32_t kMaxAttempts = 1000;
constexpr double kMaxRate = 1'000'000;
constexpr Duration kWeek = hours(7 * 24);

/// "100/s", "6000/m" or "1/h" as messages a second; nothing for anything else.
std::optional<double> parse_rate(std::string_view text) {
  std::uint32_t count = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, code] = std::from_chars(text.data(), end, count);
  const std::string_view unit(rest, static_cast<std::size_t>(end - rest));
  const double span = unit == "/s" ? 1 : unit == "/m" ? 60 : unit == "/h" ? 3600 : 0;
  if (code != std::errc() || span == 0 || count == 0 || count / span > kMaxRate) {
    return std::nullopt;
  }
  return count / span;
}

const char* rate_complaint(const std::string& text) {
  return parse_rate(text) ? nullptr
                          : "a number of messages and a unit of time, such as \"100/s\", \"6000/m\" or \"1/h\", at "
                            "most \"1000000/s\"";
}

/// A process with the host's own libraries in it does not start with less.
constexpr std::uint64_t kLeastMemory = 16ULL * 1024 * 1024;

const char* memory_complaint(const std::string& text) {
  const auto bytes = parse_size(text);
  return bytes && *bytes >= kLeastMemory ? nullptr : "a size of at least \"16MiB\", such as \"512MiB\" or \"2GiB\"";
}

/// What [job.options] may hold, out of what TOML may hold.
class OptionReader {
 public:
  OptionReader(const Member& member, Reader& reader)
      : member_(member), reader_(reader), naming_("'" + abridged(member.key) + "' in [job.options] ") {}

  /// Nothing after an error.
  std::optional<OptionValue> read() const {
    return std::visit([this](const auto& content) { return convert(content); }, member_.value.content);
  }

 private:
  std::nullopt_t fail(const Value& value, const std::string& message) const {
    if (!std::holds_alternative<BrokenValue>(value.content)) {
      reader_.error(value.place, naming_ + message);
    }
    return std::nullopt;
  }

  std::optional<OptionValue> convert(bool value) const { return OptionValue(value); }
  std::optional<OptionValue> convert(std::int64_t value) const { return OptionValue(value); }
  std::optional<OptionValue> convert(const std::string& value) const { return OptionValue(value); }
  std::optional<OptionValue> convert(double value) const {
    if (!std::isfinite(value)) {
      return fail(member_.value, "must be a finite number");
    }
    return OptionValue(value);
  }
  std::optional<OptionValue> convert(const Array& elements) const {
    std::vector<std::string> list;
    for (const Value& element : elements) {
      const auto* text = std::get_if<std::string>(&element.content);
      if (text == nullptr) {
        return fail(element, std::string("must hold strings only, not ") + kind_of(element));
      }
      list.push_back(*text);
    }
    return OptionValue(std::move(list));
  }
  std::optional<OptionValue> convert(const Table& entries) const {
    std::map<std::string, std::string> map;
    for (const Member& entry : entries) {
      const auto* text = std::get_if<std::string>(&entry.value.content);
      if (text == nullptr) {
        return fail(entry.value, "must hold strings only; '" + abridged(entry.key) + "' is " + kind_of(entry.value));
      }
      map.emplace(entry.key, *text);
    }
    return OptionValue(std::move(map));
  }
  std::optional<OptionValue> convert(const ForeignValue& foreign) const {
    return fail(member_.value, std::string("is ") + foreign.kind + "; write it as a string");
  }
  std::optional<OptionValue> convert(const BrokenValue&) const { return std::nullopt; }

  const Member& member_;
  Reader& reader_;
  std::string naming_;
};

void read_options(Section job, Reader& reader, JobConfig& config) {
  const Member* options = job.find("options");
  if (options == nullptr) {
    return;
  }
  const auto* table = std::get_if<Table>(&options->value.content);
  if (table == nullptr) {
    reader.error(options->value.place, job.naming("options") + "must be a table, written as [job.options]");
    return;
  }
  for (const Member& member : *table) {
    if (std::optional<OptionValue> value = OptionReader(member, reader).read()) {
      config.options.emplace(member.key, Option{*std::move(value), member.place});
    }
  }
}

void read_retry(Section retry, Reader& reader, RetryConfig& config) {
  retry.read("max_attempts", config.max_attempts, 1, kMaxAttempts);
  retry.read("backoff", config.backoff, kBackoffs);
  retry.read("base", config.base, {Duration::zero(), kWeek});
  retry.read("max", config.max, {Duration::zero(), kWeek});
  retry.read("jitter", config.jitter, kJitters);
  if (config.base > config.max) {
    const Member* base = retry.find("base");
    const Place place = base == nullptr ? retry.find("max")->value.place : base->value.place;
    reader.error(place, "'base' in [job.retry] must not be longer than 'max': " + format_duration(config.base) +
                            " and " + format_duration(config.max));
  }
}

void read_limits(Section limits, Reader& reader, JobConfig& config) {
  if (limits.present() && config.isolation == Isolation::thread) {
    reader.error(limits.place(),
                 "[job.limits] needs a process to limit: set isolation = \"process\" in [job], or take it away");
  }
  std::string memory;
  limits.read("memory", memory, memory_complaint);
  config.limits.memory = parse_size(memory).value_or(0);
  limits.read("cpu", config.limits.cpu, {milliseconds(10), kWeek});
}

const char* plugin_file_complaint(const std::string& text) {
  return text.size() > 3 && text.ends_with(".so") && !text.starts_with('.') && text.find('/') == std::string::npos
             ? nullptr
             : "the name of a file in a plugin folder, such as \"greeter.so\"";
}

const char* sha256_complaint(const std::string& text) {
  constexpr std::size_t kDigits = 64;
  return text.size() == kDigits && text.find_first_not_of("0123456789abcdefABCDEF") == std::string::npos
             ? nullptr
             : "64 hexadecimal digits, as sha256sum prints them";
}

/// A digest without a file would be checked only after the file's code has run, so that neither is without the other.
void read_plugin(Section plugin, JobConfig& config) {
  if (!plugin.present()) {
    return;
  }
  PluginPin pin;
  if (plugin.require("file", "name the file, as in file = \"greeter.so\"") != nullptr) {
    plugin.read("file", pin.file, plugin_file_complaint);
  }
  if (plugin.require("sha256", "give what `sha256sum` prints for the file") != nullptr) {
    plugin.read("sha256", pin.sha256, sha256_complaint);
    pin.place = plugin.find("sha256")->value.place;
  }
  for (char& digit : pin.sha256) {
    digit = digit >= 'A' && digit <= 'F' ? static_cast<char>(digit - 'A' + 'a') : digit;
  }
  config.plugin = std::move(pin);
}

void read_dead_letter(Section dead_letter, Reader& reader, JobConfig& config) {
  // What fails in a dead-letter queue stays there: there is nowhere further to move it.
  config.dead_letter = config.source == Source::dlq ? DeadLetterPolicy::keep : DeadLetterPolicy::move;
  dead_letter.read("policy", config.dead_letter, kPolicies);
  if (config.source == Source::dlq && config.dead_letter == DeadLetterPolicy::move) {
    reader.error(
        dead_letter.find("policy")->value.place,
        "'policy' in [job.dead_letter] cannot be \"move\" for a job with source = \"dlq\", whose messages are there "
        "already; use \"keep\" or \"discard\"");
  }
}

/// Reads [job] itself; the tables inside it are read by others.
void read_job(Section job, Reader& reader, JobConfig& config) {
  job.read("name", config.name, name_complaint);
  if (!read_outbox_source(job, reader, config)) {
    read_queues(job, reader, config);
    job.read("source", config.source, kSources);
  }
  if (job.require("handler", "name a plugin's handler, as in handler = \"log\"") != nullptr) {
    job.read("handler", config.handler, name_complaint);
    config.handler_place = job.find("handler")->value.place;
  }
  job.read("concurrency", config.concurrency, 1, kMaxConcurrency);
  job.read("timeout", config.timeout, {milliseconds(1), kWeek});
  job.read("isolation", config.isolation, kIsolations);
  std::string rate;
  job.read("rate_limit", rate, rate_complaint);
  config.rate_limit = parse_rate(rate).value_or(0);
  job.read("poll_interval", config.poll_interval, {milliseconds(10), hours(1)});
}

/// The job's name is its file's unless it has one of its own, and then must do as a name.
void read_name(Section job, Reader& reader, JobConfig& config) {
  if (const Member* name = job.find("name")) {
    config.name_place = name->value.place;
    return;
  }
  const std::filesystem::path path(config.file);
  config.name = (path.extension() == ".toml" ? path.stem() : path.filename()).string();
  config.name_place = {config.file};
  if (const char* expected = name_complaint(config.name)) {
    reader.error({config.file}, "the file's name is no name for a job, which must be " + std::string(expected) +
                                    "; set 'name' in [job] or rename the file");
  }
}

}  // namespace

Parsed<JobConfig> parse_job_config(const std::string& text, const std::string& file, const Environment& environment) {
  Parsed<Document> parsed = parse_document(text, file, environment);
  if (auto* errors = std::get_if<std::vector<ConfigError>>(&parsed)) {
    return std::move(*errors);
  }
  Reader reader(std::get<Document>(parsed), file);
  JobConfig config;
  config.file = file;
  Section job = reader.root().section("job");
  if (job.present() || reader.root().find("job") == nullptr) {
    read_job(job, reader, config);
    read_name(job, reader, config);
    read_plugin(job.section("plugin"), config);
    read_limits(job.section("limits"), reader, config);
    read_retry(job.section("retry"), reader, config.retry);
    read_dead_letter(job.section("dead_letter"), reader, config);
    read_idempotency(job.section("idempotency"), config);
    read_order(job, reader, config);
    read_outbox_filter(job, reader, config);
    read_priorities(job.section("priorities"), reader, config);
    read_options(job, reader, config);
  }
  read_schedules(reader.root(), reader, std::get<Document>(parsed).root, config);
  if (std::vector<ConfigError> errors = reader.finish(); !errors.empty()) {
    return errors;
  }
  return config;
}

}  // namespace sluice::config
