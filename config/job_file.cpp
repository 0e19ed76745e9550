#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include "base/error.hpp"
#include "base/text/lower_case.hpp"
#include "base/text/number.hpp"
#include "config/document.hpp"
#include "config/reader.hpp"
#include "config/schedule_times.hpp"
#include "config/syntax.hpp"

namespace sluice::config {

namespace {

constexpr std::string_view kMessage = "message";
constexpr std::string_view kAttribute = "attribute:";
constexpr std::string_view kBody = "body:";
constexpr Duration kLongestTtl = std::chrono::hours(24 * 365);

/// As RFC 6901 has it: nothing, or parts that each begin with "/", where "~" is followed by 0 or 1.
bool is_json_pointer(std::string_view text) {
  if (!text.empty() && text.front() != '/') {
    return false;
  }
  for (std::size_t at = text.find('~'); at != std::string_view::npos; at = text.find('~', at + 1)) {
    if (at + 1 == text.size() || (text[at + 1] != '0' && text[at + 1] != '1')) {
      return false;
    }
  }
  return true;
}

const char* key_complaint(const std::string& text) {
  const bool attribute = text.starts_with(kAttribute) && text.size() > kAttribute.size();
  const bool body = text.starts_with(kBody) && is_json_pointer(std::string_view(text).substr(kBody.size()));
  return text == kMessage || attribute || body
             ? nullptr
             : "\"message\", \"attribute:NAME\" or \"body:\" and a JSON pointer, such as \"body:/order/id\"";
}

void read_idempotency(Section idempotency, JobConfig& config) {
  if (!idempotency.present()) {
    return;
  }
  if (outbox_named(config.queue)) {
    idempotency.error_here(
        " cannot stand beside source = \"outbox:NAME\": an outbox has no store of its own that a key is committed to; "
        "take it away, or set it in the job of the queue that the rows go to");
  }
  IdempotencyConfig read;
  if (idempotency.require("key", "say what tells messages apart, as in key = \"message\"") != nullptr) {
    std::string key(kMessage);
    idempotency.read("key", key, key_complaint);
    if (key.starts_with(kAttribute)) {
      read.kind = IdempotencyConfig::Kind::attribute;
      read.path = key.substr(kAttribute.size());
    } else if (key.starts_with(kBody)) {
      read.kind = IdempotencyConfig::Kind::body;
      read.path = key.substr(kBody.size());
    }
  }
  idempotency.read("ttl", read.ttl, {std::chrono::seconds(1), kLongestTtl});
  idempotency.read("while_running", read.while_running);
  idempotency.read("on_duplicate", read.on_duplicate);
  idempotency.read("on_missing", read.on_missing);
  config.idempotency = std::move(read);
}

constexpr std::uint32_t kMaxWeight = 1000;
/// "orders:6" or "orders"; nothing for anything else.
std::optional<WeightedQueue> parse_weighted(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  WeightedQueue queue{.name = text.substr(0, colon)};
  if (colon != std::string::npos) {
    queue.weight = parse_number<std::uint32_t>(std::string_view(text).substr(colon + 1)).value_or(0);
    if (queue.weight == 0 || queue.weight > kMaxWeight) {
      return std::nullopt;
    }
  }
  return name_complaint(queue.name) == nullptr ? std::optional(queue) : std::nullopt;
}

const char* weighted_complaint(const std::string& text) {
  return parse_weighted(text) ? nullptr : "a queue and its weight of 1 to 1000, such as \"orders:6\"";
}

void read_queues(Section job, JobConfig& config) {
  const Member* several = job.find("queues");
  if (several == nullptr) {
    config.queue_place = job.require("queue", "name the queue, as in queue = \"orders\"", config.queue, name_complaint);
    return;
  }
  config.queue_place = several->value.place;
  if (job.find("queue") != nullptr) {
    job.refuse({"queue"}, "cannot stand beside 'queues'; put it into that list");
    return;
  }
  std::vector<std::string> texts;
  job.read("queues", texts, weighted_complaint);
  for (const std::string& text : texts) {
    const auto queue = parse_weighted(text);
    if (!queue) {
      continue;
    }
    const auto same = [&](const WeightedQueue& other) { return other.name == queue->name; };
    if (std::any_of(config.queues.begin(), config.queues.end(), same)) {
      job.error_at_value("queues", "names \"" + queue->name + "\" twice; give it one weight");
    }
    config.queues.push_back(*queue);
  }
  const auto* list = std::get_if<Array>(&several->value.content);
  if (list != nullptr && list->empty()) {
    job.error_at_value("queues", "is empty; name queues, as in queues = [\"urgent:6\", \"bulk:1\"]");
  }
  config.queue = config.queues.empty() ? "" : config.queues.front().name;
}

void read_order(Section job, JobConfig& config) {
  job.read("order", config.order);
  job.read("fair", config.fair);
  if (config.fair && config.order != Order::none) {
    job.refuse({"fair"}, "is for messages without order; with 'order' groups have their turns anyway");
  }
  const bool holds = job.choose("on_dead_letter", {"continue", "hold"}) == 1;
  config.on_dead_letter = holds ? OnDeadLetter::hold : OnDeadLetter::go_on;
  if (holds) {
    if (config.order == Order::none) {
      job.refuse({"on_dead_letter"}, "needs an order to hold up: set order = \"group\" or \"queue\"");
    } else if (config.dead_letter != DeadLetterPolicy::move) {
      job.refuse({"on_dead_letter"},
                 "needs dead letters: with source = \"dlq\" or another 'policy' in "
                 "[job.dead_letter] than \"move\" there are none; take it away");
    }
  }
}

void read_priorities(Section priorities, JobConfig& config) {
  config.weighs_priorities = priorities.present();
  priorities.read("critical", config.priorities.critical, 1, kMaxWeight);
  priorities.read("high", config.priorities.high, 1, kMaxWeight);
  priorities.read("normal", config.priorities.normal, 1, kMaxWeight);
  priorities.read("low", config.priorities.low, 1, kMaxWeight);
  if (priorities.present() && outbox_named(config.queue)) {
    priorities.error_here(
        " cannot stand beside source = \"outbox:NAME\", whose rows have no priorities; take it away, or use a job for "
        "each class, with 'types' in [job.outbox]");
  } else if (priorities.present() && (config.order != Order::none || config.fair)) {
    priorities.error_here(
        " cannot stand beside 'order' or 'fair', which give the turns by group; take one away, "
        "or use a queue for each class and one job with queues = [\"urgent:6\", \"bulk:1\"]");
  }
}

using std::chrono::hours;
using std::chrono::seconds;

constexpr std::size_t kMostText = 256UL * 1024;

const char* text_complaint(const std::string& text) {
  return text.size() <= kMostText ? nullptr : "at most 256 KiB; send where the rest lies";
}
const char* type_complaint(const std::string& text) {
  return !text.empty() && text.size() <= 255 ? nullptr : "a content type, such as \"application/json\"";
}
const char* priority_complaint(const std::string& text) {
  return text == "critical" || text == "high" || text == "normal" || text == "low"
             ? nullptr
             : "\"critical\", \"high\", \"normal\" or \"low\"";
}

void read_cron(Section& section, ScheduleConfig& schedule) {
  section.read("cron", schedule.cron, any_complaint);
  if (section.text("cron") == nullptr) {
    return;
  }
  const auto line = parse_cron(schedule.cron);
  if (const auto* wrong = std::get_if<std::string>(&line)) {
    section.error_at_value("cron", *wrong);
  }
}

void read_zone(Section& section, ScheduleConfig& schedule) {
  section.read("time_zone", schedule.time_zone, any_complaint);
  if (section.text("time_zone") != nullptr && !has_time_zone(schedule.time_zone)) {
    section.error_at_value("time_zone",
                           "names no time zone of this machine: \"" + abridged(schedule.time_zone) + "\"; " +
                               (has_time_zones() ? "give its IANA name, such as \"Europe/Vienna\" or \"UTC\""
                                                 : "its time zone data is missing: install the package tzdata"));
  }
}

ScheduleConfig read_schedule(Section section, const Member& member, const std::string& own_queue) {
  ScheduleConfig schedule{.name = member.key, .place = member.place, .queue = own_queue};
  section.check_name(member, "a schedule's");
  read_cron(section, schedule);
  section.read("every", schedule.every, {seconds(1), hours(7 * 24)});
  const Member* every = section.find("every");
  const bool cron = section.find("cron") != nullptr;
  if (cron == (every != nullptr)) {
    section.error(member.place, section.title() + (cron ? " has both 'cron' and 'every'; keep one of them"
                                                        : " has neither 'cron' nor 'every'; say when it is due, as in "
                                                          "cron = \"30 6 * * MON-FRI\" or every = \"15m\""));
  } else if (every != nullptr && schedule.every % seconds(1) != Duration::zero()) {
    section.error_at_value("every", "must be whole seconds");
  }
  read_zone(section, schedule);
  if (!cron) {
    section.refuse({"time_zone"}, "goes with 'cron' only; an interval has none: leave it out");
  }
  section.read("catch_up", schedule.catch_up);
  section.read("queue", schedule.queue, name_complaint);
  section.read("body", schedule.body, text_complaint);
  section.read("content_type", schedule.content_type, type_complaint);
  section.read("group", schedule.group, text_complaint);
  section.read("priority", schedule.priority, priority_complaint);
  section.read("attributes", schedule.attributes, false);
  return schedule;
}

void read_schedules(Section schedules, JobConfig& config) {
  for (const Member& member : schedules.members()) {
    Section section = schedules.section(member.key);
    config.schedules.push_back(read_schedule(section, member, config.queue));
    if (outbox_named(config.queue) && section.find("queue") == nullptr) {
      section.error(member.place, section.title() +
                                      " has no 'queue'; name one, for the job's source is an outbox, "
                                      "which its application alone writes");
    }
  }
}

using std::chrono::hours;
using std::chrono::milliseconds;

constexpr std::uint32_t kMaxAttempts = 1000;
constexpr double kMaxRate = 1'000'000;
constexpr Duration kWeek = hours(7 * 24);

constexpr std::string_view kPerHost = " per host";

/// "100/s", "6000/m" or "1/h", also with " per host" behind it, as messages a second; nothing for anything else.
std::optional<double> parse_rate(std::string_view text) {
  text.remove_suffix(text.ends_with(kPerHost) ? kPerHost.size() : 0);
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
                            "most \"1000000/s\", of all hosts together or, as \"100/s per host\", of each";
}

/// A process with the host's own libraries in it does not start with less.
constexpr std::uint64_t kLeastMemory = 16ULL * 1024 * 1024;

const char* memory_complaint(const std::string& text) {
  const auto bytes = parse_size(text);
  return bytes && *bytes >= kLeastMemory ? nullptr : "a size of at least \"16MiB\", such as \"512MiB\" or \"2GiB\"";
}

/// What a table of options may hold, out of what TOML may hold; anything after an error.
OptionValue option_value(Section& options, const Member& member) {
  const auto convert = [&](const auto& content) -> OptionValue {
    using Content = std::decay_t<decltype(content)>;
    if constexpr (std::is_same_v<Content, Array>) {
      std::vector<std::string> list;
      options.read(member.key, list, any_complaint);
      return list;
    } else if constexpr (std::is_same_v<Content, Table>) {
      std::map<std::string, std::string> map;
      options.read(member.key, map, false);
      return map;
    } else if constexpr (std::is_same_v<Content, ForeignValue>) {
      options.error_at_value(member.key, std::string("is ") + content.kind + "; write it as a string");
      return {};
    } else if constexpr (std::is_same_v<Content, BrokenValue>) {
      return {};
    } else {
      return content;
    }
  };
  const auto* number = std::get_if<double>(&member.value.content);
  if (number != nullptr && !std::isfinite(*number)) {
    options.error_at_value(member.key, "must be a finite number");
  }
  return std::visit(convert, member.value.content);
}

/// The options of a handler, which may have any name.
void read_options(Section options, std::map<std::string, Option>& target) {
  for (const Member& member : options.members()) {
    options.find(member.key);
    target.emplace(member.key, Option{option_value(options, member), member.place});
  }
}

void read_arounds(Section job, JobConfig& config) {
  for (Section around : job.sections("around", kMaxArounds)) {
    AroundConfig read;
    read.handler_place =
        around.require("handler", "name a plugin's handler that goes around others", read.handler, name_complaint);
    read_options(around.section("options"), read.options);
    config.arounds.push_back(std::move(read));
  }
}

void read_retry(Section retry, RetryConfig& config) {
  retry.read("max_attempts", config.max_attempts, 1, kMaxAttempts);
  if (const Member* attempts = retry.find("max_attempts")) {
    config.place = attempts->value.place;
  }
  retry.read("backoff", config.backoff);
  retry.read("base", config.base, {Duration::zero(), kWeek});
  retry.read("max", config.max, {Duration::zero(), kWeek});
  retry.read("jitter", config.jitter);
  if (config.base > config.max) {
    const Member* base = retry.find("base");
    const Place place = base == nullptr ? retry.find("max")->value.place : base->value.place;
    retry.error(place, "'base' in [job.retry] must not be longer than 'max': " + format_duration(config.base) +
                           " and " + format_duration(config.max));
  }
}

void read_limits(Section limits, JobConfig& config) {
  if (limits.present() && config.isolation == Isolation::thread) {
    limits.error_here(" needs a process to limit: set isolation = \"process\" in [job], or take it away");
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
  plugin.require("file", "name the file, as in file = \"greeter.so\"", pin.file, plugin_file_complaint);
  pin.place = plugin.require("sha256", "give what `sha256sum` prints for the file", pin.sha256, sha256_complaint);
  pin.sha256 = lower_case(pin.sha256);
  config.plugin = std::move(pin);
}

void read_dead_letter(Section dead_letter, JobConfig& config) {
  // What fails in a dead-letter queue stays there: there is nowhere further to move it.
  config.dead_letter = config.source == Source::dlq ? DeadLetterPolicy::keep : DeadLetterPolicy::move;
  dead_letter.read("policy", config.dead_letter);
  if (config.source == Source::dlq && config.dead_letter == DeadLetterPolicy::move) {
    dead_letter.error_at_value("policy",
                               "cannot be \"move\" for a job with source = \"dlq\", whose messages are there "
                               "already; use \"keep\" or \"discard\"");
  }
  if (config.dead_letter == DeadLetterPolicy::keep && outbox_named(config.queue)) {
    dead_letter.error_at_value("policy",
                               "cannot be \"keep\" for an outbox: a row whose tries are used up stays in the table as "
                               "a dead letter anyway; use \"move\" or \"discard\"");
  }
}

/// Reads [job] itself; the tables inside it are read by others.
void read_job(Section job, JobConfig& config) {
  job.read("name", config.name, name_complaint);
  if (!read_outbox_source(job, config)) {
    read_queues(job, config);
    job.read("source", config.source);
  }
  config.handler_place =
      job.require("handler", "name a plugin's handler, as in handler = \"log\"", config.handler, name_complaint);
  job.read("concurrency", config.concurrency, 1, kMaxAsyncConcurrency);
  job.read("max_batch", config.max_batch, 1, kMaxBatch);
  job.read("max_wait", config.max_wait, {Duration::zero(), std::chrono::minutes(1)});
  job.read("timeout", config.timeout, {milliseconds(1), kWeek});
  job.read("isolation", config.isolation);
  std::string rate;
  job.read("rate_limit", rate, rate_complaint);
  config.rate_limit = parse_rate(rate).value_or(0);
  // The hosts of an outbox have no board to share it by.
  const bool says_per_host = rate.ends_with(kPerHost);
  config.rate_per_host = says_per_host || outbox_named(config.queue).has_value();
  config.rate_text = rate.empty() || says_per_host || !config.rate_per_host ? rate : rate + std::string(kPerHost);
  job.read("poll_interval", config.poll_interval, {milliseconds(10), hours(1)});
}

/// The job's name is its file's unless it has one of its own, and then must do as a name.
void read_name(Section job, JobConfig& config) {
  if (const Member* name = job.find("name")) {
    config.name_place = name->value.place;
    return;
  }
  const std::filesystem::path path(config.file);
  config.name = (path.extension() == ".toml" ? path.stem() : path.filename()).string();
  config.name_place = {config.file};
  if (const char* expected = name_complaint(config.name)) {
    job.error({config.file}, "the file's name is no name for a job, which must be " + std::string(expected) +
                                 "; set 'name' in [job] or rename the file");
  }
}

}  // namespace

Parsed<JobConfig> parse_job_config(const std::string& text, const std::string& file, const Environment& environment) {
  SLUICE_TRY(parsed, parse_document(text, file, environment));
  Reader reader(*parsed, file);
  JobConfig config;
  config.file = file;
  Section job = reader.root().section("job");
  if (job.present() || reader.root().find("job") == nullptr) {
    read_job(job, config);
    read_name(job, config);
    read_plugin(job.section("plugin"), config);
    read_limits(job.section("limits"), config);
    read_retry(job.section("retry"), config.retry);
    read_dead_letter(job.section("dead_letter"), config);
    read_idempotency(job.section("idempotency"), config);
    read_order(job, config);
    read_outbox_filter(job, config);
    read_priorities(job.section("priorities"), config);
    read_options(job.section("options"), config.options);
    read_arounds(job, config);
  }
  read_schedules(reader.root().section("schedule", ".NAME"), config);
  if (std::vector<ConfigError> errors = reader.finish(); !errors.empty()) {
    return errors;
  }
  return config;
}

}  // namespace sluice::config
