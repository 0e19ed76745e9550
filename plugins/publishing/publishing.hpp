#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <mutex>
#include <optional>
#include <sluice/handler.hpp>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace publishing {

/// Frees what a C library has made, by a function of the library's.
template <auto function>
struct FreedBy {
  template <typename T>
  void operator()(T* made) const {
    function(made);
  }
};

/// A file descriptor and its one owner.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  ~Descriptor() { reset(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int get() const { return fd_; }
  bool open() const { return fd_ >= 0; }
  /// Leaves errno alone.
  void reset(int fd = -1);

 private:
  int fd_;
};

/// True for the bytes that no header, name or subject may hold: below a space, and DEL.
constexpr bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }
bool has_control(std::string_view text);

/// True when it has characters, and each is a letter or digit of ASCII or among `others`.
bool consists_of(std::string_view text, std::string_view others);

/// A text of anybody's making as one line: control characters become spaces, and what is longer than `limit` is cut.
std::string one_line(std::string_view text, std::size_t limit = 200);

/// True when the pattern, in which each `*` stands for any text, fits the whole of `text`.
bool matches(std::string_view pattern, std::string_view text);
/// The same of one of several patterns.
template <typename Patterns>
bool matches_any(const Patterns& patterns, std::string_view text) {
  return std::any_of(patterns.begin(), patterns.end(), [text](const auto& one) { return matches(one, text); });
}

/// A text as the value of a header: control characters become spaces.
std::string header_value(std::string_view text);

/// In lower case.
std::string hexadecimal(const unsigned char* bytes, std::size_t size);
/// SHA-256 in lower-case hexadecimal. Throws std::runtime_error when the cryptography library has none.
std::string sha256_hex(std::string_view bytes);

/// A destination's name in the form of AWS, ARN, or the same form for other systems, RN:
/// `arn:aws:sns:eu-west-1:123456789012:orders`, `rn::nats:::orders`. Borrows the text.
struct ResourceName {
  std::string_view text;
  std::string_view partition;
  std::string_view service;
  std::string_view region;
  std::string_view account;
  std::string_view resource;  ///< the rest, which may have colons and slashes in it
};

/// Nothing for what does not begin with `arn:` or `rn:`, or has fewer than five colons.
std::optional<ResourceName> parse_resource_name(std::string_view text);

/// Where a message goes, as a rule or the message's type says it. A value.
struct Target {
  std::string name;  ///< the resource's name without what stands before it
  std::string text;  ///< as it was said: a name, an ARN or an RN
};

/// What is published beside the body: of the message where it has the attribute, else of the job. Borrows both.
struct Envelope {
  std::string_view type;    ///< where it wants to go: `aggregate_type`
  std::string_view id;      ///< what it is about: `aggregate_id`, else the message's group; may be empty
  std::string_view event;   ///< may be empty
  std::string_view source;  ///< the queue or outbox that it comes from
  std::string_view row;     ///< its id there
  std::string_view producer;
  std::string_view source_id;  ///< of an outbox: its table's own id; otherwise empty

  bool of_outbox() const { return source.starts_with("outbox:"); }
  /// Its name among all messages of all jobs, the same at each attempt and on every host: "source_id/row" of an outbox,
  /// else "producer/source/row".
  std::string unique_id() const;
};

using Attributes = std::vector<std::pair<std::string, std::string>>;
/// What goes out beside the body: Event, where there is one, Producer, Tombstone for a row whose payload is NULL, and
/// those attributes of these names that the message has.
Attributes published_attributes(const sluice::Message& message, const Envelope& envelope,
                                const std::vector<std::string>& names);

/// Two lists of options as one.
template <std::size_t one, std::size_t two>
constexpr std::array<sluice::OptionSpec, one + two> both(const std::array<sluice::OptionSpec, one>& first,
                                                         const std::array<sluice::OptionSpec, two>& second) {
  std::array<sluice::OptionSpec, one + two> all{};
  for (std::size_t i = 0; i < one + two; ++i) {
    all[i] = i < one ? first[i] : second[i - one];
  }
  return all;
}

/// Throws std::invalid_argument with a sentence for the user.
[[noreturn]] void refuse(const std::string& option, const std::string& why);
/// These words in quotes, with commas between them.
std::string quoted(std::span<const std::string_view> words);
/// The value of an option that has to be one of these words.
std::string one_of(const sluice::Options& options, const char* name, std::span<const std::string_view> words);
inline std::string one_of(const sluice::Options& options, const char* name,
                          std::initializer_list<std::string_view> words) {
  return one_of(options, name, std::span(words.begin(), words.size()));
}
/// A level of the log by its name; nothing for "off", which only some options may be.
std::optional<sluice_log_level> log_level(const sluice::Options& options, const char* name, bool may_be_off);
/// A number from `least` to `most`.
std::int64_t number_in(const sluice::Options& options, const char* name, std::int64_t least, std::int64_t most);
/// A text without control characters; empty without the option.
std::string plain_text(const sluice::Options& options, const char* name);
/// The name of a file that can be read, as such a text.
std::string readable_file(const sluice::Options& options, const char* name);
/// The name of a folder that exists; empty without the option.
std::string existing_folder(const sluice::Options& options, const char* name);
/// A duration from `least` to `most`.
std::chrono::milliseconds bounded(const sluice::Options& options, const char* name, std::chrono::milliseconds least,
                                  std::chrono::milliseconds most);

/// When it is time to warn of something once more: at the first time, and a while after each. Of more things at once
/// than can be remembered nothing is said. Thread-safe.
class Reminder {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit Reminder(std::chrono::nanoseconds every, std::size_t most = 1024) : every_(every), most_(most) {}
  bool due(std::string_view what, Time now = std::chrono::steady_clock::now());

 private:
  const std::chrono::nanoseconds every_;
  const std::size_t most_;
  std::mutex mutex_;
  // Guarded by mutex_.
  std::unordered_map<std::string, Time> told_;
};

/// What becomes of messages while nobody can be given them, by the option "outage": they are retried by the job's
/// policy, or come again after `wait`, which counts no attempt and is said once a minute. Thread-safe.
class Outage {
 public:
  Outage(const sluice::Options& options, std::chrono::milliseconds wait);
  sluice::Outcome outcome(const std::string& why, const sluice::Context& context);

 private:
  const bool snoozes_;
  const std::chrono::milliseconds wait_;
  Reminder reminder_{std::chrono::minutes(1)};
};

/// Which message goes where, and what a job says for messages that do not say it themselves. Rules of the job come
/// first, by event, then by type; then the type itself, where it is an ARN or RN of this publisher's service; then the
/// job's one destination.
///
/// Of several rules that fit, the one with the most characters that are no `*` decides, and of equals the first by the
/// alphabet. Thread-safe.
class Routes {
 public:
  static constexpr std::array<sluice::OptionSpec, 8> kOptions = {
      sluice::option<std::map<std::string, std::string>>(
          "routes", "Destinations by type: a type, in which * stands for any text, and where its messages go."),
      sluice::option<std::map<std::string, std::string>>(
          "event_routes", "Destinations by event, in the same way; they come before those by type."),
      sluice::option<std::string>("unroutable",
                                  "What becomes of a message that goes nowhere: reject, retry by the job's policy, or "
                                  "snooze, which counts no attempt; default: snooze for rows of an outbox, else "
                                  "reject."),
      sluice::option<std::chrono::milliseconds>("unroutable_wait", "5s", "For how long it is snoozed."),
      sluice::option<std::vector<std::string>>("skip_events",
                                               "Events, in which * stands for any text, that are dropped unpublished."),
      sluice::option<std::string>("producer",
                                  "Who publishes, where the message has no attribute \"producer\"; default: "
                                  "the job's name."),
      sluice::option<std::string>("event", "The kind of event, where the message has no attribute \"event\"."),
      sluice::option<std::string>("aggregate_type",
                                  "The type that routes are chosen by, where the message has no such attribute."),
  };

  /// `services`: those whose ARNs and RNs are ours, the first of which we are named by; `fallback`: the option that
  /// names the job's one destination. Throws std::invalid_argument for a rule that leads to another service.
  Routes(const sluice::Options& options, std::vector<std::string> services, std::string fallback, std::string_view job);
  /// Of this message; borrows it and the routes.
  Envelope envelope(const sluice::Message& message) const;

  /// Otherwise what becomes of the message: its event is to be skipped, or it has no destination.
  std::variant<Target, sluice::Outcome> find(const Envelope& envelope, const sluice::Context& context) const;
  /// What becomes of a message without a destination. One that is snoozed is warned of, and again after ten minutes.
  sluice::Outcome without_destination(const std::string& why, const Envelope& envelope,
                                      const sluice::Context& context) const;

 private:
  struct Rule {
    std::string pattern;
    Target target;
  };
  using Rules = std::vector<Rule>;

  Rules rules(const sluice::Options& options, const char* name) const;
  Target target_of(const std::string& option, const std::string& text) const;
  bool is_ours(std::string_view service) const;
  static const Target* first(const Rules& rules, std::string_view text);

  std::string producer_;
  std::string event_;
  std::string type_;
  std::vector<std::string> services_;
  std::string fallback_name_;
  std::optional<Target> fallback_;
  Rules by_event_;
  Rules by_type_;
  std::vector<std::string> skipped_;
  std::string unroutable_;  ///< empty: by where the message comes from
  std::chrono::milliseconds unroutable_wait_{};
  mutable Reminder reminder_{std::chrono::minutes(10)};
};

}  // namespace publishing
