// Publishes each message to a topic of Amazon SNS.

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <sluice/handler.hpp>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "dynamo/transport/curl_transport.hpp"
#include "publisher.hpp"
#include "publishing/publishing.hpp"
#include "service.hpp"

namespace sns {

/// The options of an SNS job, checked, but for those of access. A value.
struct Settings {
  static constexpr std::array<sluice::OptionSpec, 20> kOptions = {
      sluice::option<std::string>("topic",
                                  "The topic, by ARN or name, of messages for which neither a rule nor their "
                                  "type says it."),
      sluice::option<std::string>("region",
                                  "Where topics are that are known by name; default: from AWS's usual places. "
                                  "An ARN names its own."),
      sluice::option<std::string>("endpoint", "An address instead of AWS's own: for emulators."),
      sluice::option<std::string>("access_key_id", "A key instead of AWS's usual places; with secret_access_key."),
      sluice::option<std::string>("secret_access_key", "Its secret; best as ${VARIABLE}.").secret(),
      sluice::option<std::string>("session_token", "Of keys that are temporary.").secret(),
      sluice::option<std::vector<std::string>>("allow_topics",
                                               "Topics that may be published to, by ARN or name with *; default: all."),
      sluice::option<std::vector<std::string>>("deny_topics", "Topics that may not, in the same way."),
      sluice::option<std::vector<std::string>>(
          "ignore_unreadable_topics", "Topics, in the same way, that are used though their attributes cannot be read."),
      sluice::option<std::chrono::milliseconds>("refetch_interval", "24h", "How long the list of topics is good for."),
      sluice::option<std::string>("group_id", "hash",
                                  "An aggregate id that can be no MessageGroupId: hash it, or reject the message."),
      sluice::option<bool>("group_on_standard", "false", "Send MessageGroupId to topics that are not FIFO, too."),
      sluice::option<std::vector<std::string>>("attributes", R"(["traceparent", "tracestate"])",
                                               "Attributes of the message that go out under the same names."),
      sluice::option<std::vector<std::string>>(
          "retry_errors",
          R"(["NotFound", "AuthorizationError", "AccessDenied*", "InvalidSecurity", "SignatureDoesNotMatch", "KMS*"])",
          "Lasting errors of SNS that are retried by the job's policy, since an operator can mend them; with *. Others "
          "reject the message."),
      sluice::option<std::string>("outage", "snooze",
                                  "What becomes of messages while SNS cannot be reached: snooze, which counts no "
                                  "attempt, or retry by the job's policy, which does."),
      sluice::option<std::chrono::milliseconds>("snooze_time", "1s", "For how long it is snoozed, then."),
      sluice::option<std::int64_t>("attempts", "3",
                                   "How often a throttled or failed request is made before the job's "
                                   "retry policy decides, up to 10."),
      sluice::option<std::chrono::milliseconds>("timeout", "10s", "For one request."),
      sluice::option<std::chrono::milliseconds>("linger", "5ms", "How long a batch waits for another message to come."),
      sluice::option<std::chrono::milliseconds>("linger_max", "50ms",
                                                "How long a message waits for its batch at most."),
  };

  /// Throws std::invalid_argument with a sentence for the user.
  static Settings read(const sluice::Options& options);

  DirectorySettings directory;
  EntryRules entries;
  QueueLimits queue;
  std::vector<std::string> attributes;
  std::vector<std::string> retried_errors;
  std::chrono::milliseconds timeout{};
};

namespace {

using publishing::bounded;
using publishing::refuse;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""h;

bool is_attribute_name(const std::string& text) {
  constexpr std::size_t kMaxLength = 256;
  return publishing::consists_of(text, "_-.") && text.size() <= kMaxLength && text.front() != '.' &&
         text.back() != '.' && text.find("..") == std::string::npos;
}

std::vector<std::string> attributes_option(const sluice::Options& options) {
  // Ten are the most that SNS hands to a queue with the bare message; three are ours.
  constexpr std::size_t kMost = 7;
  auto names = options.list("attributes");
  for (const std::string& name : names) {
    if (!is_attribute_name(name) || name == "Event" || name == "Producer" || name == "Tombstone") {
      refuse("attributes", "has \"" + publishing::one_line(name) + "\", which cannot be the name of an attribute");
    }
  }
  if (names.size() > kMost) {
    refuse("attributes", "has " + std::to_string(names.size()) + " names; 7 are the most");
  }
  return names;
}

}  // namespace

Settings Settings::read(const sluice::Options& options) {
  Settings settings;
  settings.directory.allowed = options.list("allow_topics");
  settings.directory.denied = options.list("deny_topics");
  settings.directory.unreadable = options.list("ignore_unreadable_topics");
  settings.directory.refetch = bounded(options, "refetch_interval", 1ms, 24h * 365);
  settings.entries.hash_groups = publishing::one_of(options, "group_id", {"hash", "reject"}) == "hash";
  settings.entries.group_on_standard = options.get<bool>("group_on_standard");
  settings.attributes = attributes_option(options);
  settings.retried_errors = options.list("retry_errors");
  settings.timeout = bounded(options, "timeout", 1ms, 1h);
  settings.queue.linger = bounded(options, "linger", 0ms, 1h);
  settings.queue.longest_wait =
      std::max<sluice::Duration>(bounded(options, "linger_max", 0ms, 1h), settings.queue.linger);
  settings.queue.attempts = static_cast<int>(publishing::number_in(options, "attempts", 1, 10));
  return settings;
}

}  // namespace sns

namespace {

/// What all messages of a job share. Each member uses those before it.
struct Parts {
  Parts(const sluice::Options& options, const sns::Settings& settings, sluice::Host host)
      : endpoints(sns::endpoints_of(options, environment)),
        reach(host, endpoints),
        credentials(sns::credentials_of(options, environment, transport, clock, random)),
        service(endpoints, transport, *credentials, clock, reach),
        directory(service, settings.directory, clock, host),
        publisher(service, settings.queue, settings.timeout, clock, random) {
    transport.start();
  }
  ~Parts() { transport.stop(); }  // its callbacks reach into the others
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  const sluice::SystemClock clock{};
  sluice::SeededRandom random{};
  const sluice::dynamo::AwsEnvironment environment = sluice::dynamo::AwsEnvironment::of_process();
  const sns::Endpoints endpoints;
  sns::Reach reach;
  sluice::dynamo::CurlTransport transport{clock};
  const std::unique_ptr<sluice::dynamo::CredentialsProvider> credentials;
  sns::Service service;
  sns::Directory directory;
  sns::Publisher publisher;
};

// `handle` is const: the messages of all workers meet in one instance, which puts them into batches.
class Sns {
 public:
  static constexpr const char* help =
      "Publishes each message to a topic of Amazon SNS, in batches; it is done when SNS has stored it.";
  static constexpr auto options = publishing::both(sns::Settings::kOptions, publishing::Routes::kOptions);

  Sns(const sluice::Options& values, sluice::Host host)
      : settings_(sns::Settings::read(values)),
        routes_(values, {"sns"}, "topic", host.job()),
        outage_(values,
                publishing::bounded(values, "snooze_time", std::chrono::milliseconds(1), std::chrono::hours(24))),
        parts_(std::make_unique<Parts>(values, settings_, host)) {}

  sluice::Outcome handle(const sluice::Message& message, sluice::Context& context) const {
    const publishing::Envelope envelope = routes_.envelope(message);
    const auto target = routes_.find(envelope, context);
    if (const auto* end = std::get_if<sluice::Outcome>(&target)) {
      return *end;
    }
    if (context.stop_requested()) {
      return sluice::release();
    }
    const auto topic = topic_of(std::get<publishing::Target>(target));
    if (const auto* missing = std::get_if<sns::Directory::Missing>(&topic)) {
      return routes_.without_destination(missing->reason, envelope, context);
    }
    if (const auto* failure = std::get_if<sns::Failure>(&topic)) {
      return judge(*failure, "SNS: ", context);
    }
    return publish(std::get<sns::Topic>(topic), message, envelope, context);
  }

 private:
  std::variant<sns::Topic, sns::Directory::Missing, sns::Failure> topic_of(const publishing::Target& target) const {
    if (target.text.starts_with("arn:")) {
      auto topic = sns::parse_topic_arn(target.text);
      if (!topic) {
        return sns::Directory::Missing{"\"" + publishing::one_line(target.text) + "\" is not the ARN of a topic"};
      }
      if (!parts_->directory.allows(*topic)) {
        return sns::Directory::Missing{"the topic " + topic->arn +
                                       " may not be published to: see allow_topics and "
                                       "deny_topics"};
      }
      return std::move(*topic);
    }
    if (!sns::is_topic_name(target.name)) {
      return sns::Directory::Missing{"\"" + publishing::one_line(target.name) + "\" cannot be the name of a topic"};
    }
    return parts_->directory.find(target.name, sluice::Deadline::after(parts_->clock, settings_.timeout));
  }

  sluice::Outcome publish(const sns::Topic& topic, const sluice::Message& message, const publishing::Envelope& envelope,
                          const sluice::Context& context) const {
    const std::string named = "SNS, topic " + topic.arn + ": ";
    // SNS has no empty messages.
    const std::string_view body = message.attribute("tombstone") ? std::string_view("null") : message.body();
    auto entry =
        sns::make_entry(topic, body, envelope.id, envelope.unique_id(),
                        publishing::published_attributes(message, envelope, settings_.attributes), settings_.entries);
    if (const auto* bad = std::get_if<sns::BadEntry>(&entry)) {
      return sluice::reject(named + bad->reason);
    }
    const auto failure = parts_->publisher.publish(topic, std::get<sns::Entry>(std::move(entry)), context);
    if (!failure) {
      return sluice::done();
    }
    // A row waits for a topic that is not there, as it does for one that is known by name.
    if (failure->code == "NotFound" && envelope.of_outbox()) {
      return routes_.without_destination(named + failure->text(), envelope, context);
    }
    return judge(*failure, named, context);
  }

  sluice::Outcome judge(const sns::Failure& failure, const std::string& named, const sluice::Context& context) const {
    const std::string why = named + failure.text();
    if (failure.unreachable) {
      return outage_.outcome(why, context);
    }
    const bool retried = publishing::matches_any(settings_.retried_errors, failure.code);
    return failure.temporary || retried ? sluice::retry(why) : sluice::reject(why);
  }

  const sns::Settings settings_;
  const publishing::Routes routes_;
  mutable publishing::Outage outage_;
  const std::unique_ptr<Parts> parts_;
};

}  // namespace

SLUICE_PLUGIN("sns", "1.0.0", Sns)
