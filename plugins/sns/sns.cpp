// Publishes each message to a topic of Amazon SNS.

#include <algorithm>
#include <memory>
#include <sluice/handler.hpp>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "directory.hpp"
#include "entry.hpp"
#include "publisher.hpp"
#include "publishing/routes.hpp"
#include "publishing/text.hpp"
#include "service.hpp"
#include "settings.hpp"

namespace {

/// What all messages of a job share. Each member uses those before it.
struct Parts {
  Parts(const sns::Settings& settings, sluice::Host host)
      : access(settings.access, host),
        directory(access.service(), settings.directory, access.clock(), host),
        publisher(access.service(), settings.queue, settings.timeout, access.clock(), access.random()) {}

  sns::Access access;
  sns::Directory directory;
  sns::Publisher publisher;
};

// `handle` is const: the messages of all workers meet in one instance, which puts them into batches.
class Sns {
 public:
  static constexpr const char* help =
      "Publishes each message to a topic of Amazon SNS, in batches; it is done when SNS has stored it.";
  static constexpr auto options = publishing::both(
      sns::Settings::kOptions, publishing::both(publishing::Routes::kOptions, publishing::Identity::kOptions));

  Sns(const sluice::Options& values, sluice::Host host)
      : settings_(sns::Settings::read(values)),
        routes_(values, {"sns"}, "topic"),
        identity_(values, host.job()),
        parts_(std::make_unique<Parts>(settings_, host)) {}

  sluice::Outcome handle(const sluice::Message& message, sluice::Context& context) const {
    const publishing::Envelope envelope = identity_.envelope(message);
    if (routes_.skips(envelope.event)) {
      return sluice::discard("the event \"" + publishing::one_line(envelope.event) + "\" is in skip_events");
    }
    const auto target = routes_.find(envelope);
    if (const auto* nowhere = std::get_if<publishing::Unroutable>(&target)) {
      return routes_.without_destination(*nowhere);
    }
    if (context.stop_requested()) {
      return sluice::release();
    }
    const auto topic = topic_of(std::get<publishing::Target>(target));
    if (const auto* missing = std::get_if<sns::Directory::Missing>(&topic)) {
      return routes_.without_destination({missing->reason});
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
    return parts_->directory.find(target.name, sluice::Deadline::after(parts_->access.clock(), settings_.timeout));
  }

  sluice::Outcome publish(const sns::Topic& topic, const sluice::Message& message, const publishing::Envelope& envelope,
                          const sluice::Context& context) const {
    std::vector<std::pair<std::string, std::string>> attributes = {{"Event", std::string(envelope.event)},
                                                                   {"Producer", std::string(envelope.producer)}};
    attributes.reserve(attributes.size() + settings_.attributes.size());
    for (const std::string& name : settings_.attributes) {
      attributes.emplace_back(name, message.attribute(name, ""));
    }
    const std::string named = "SNS, topic " + topic.arn + ": ";
    auto entry = sns::make_entry(topic, message.body(), envelope.id, envelope.unique_id(), std::move(attributes),
                                 settings_.entries);
    if (const auto* bad = std::get_if<sns::BadEntry>(&entry)) {
      return sluice::reject(named + bad->reason);
    }
    const sns::Delivery delivery = parts_->publisher.publish(topic, std::get<sns::Entry>(std::move(entry)), context);
    switch (delivery.end) {
      case sns::Delivery::End::stored:
        return sluice::done();
      case sns::Delivery::End::timed_out:
        return sluice::retry(named + "no answer within the job's timeout");
      case sns::Delivery::End::failed:
        break;
    }
    return judge(delivery.failure, named, context);
  }

  sluice::Outcome judge(const sns::Failure& failure, const std::string& named, const sluice::Context& context) const {
    const std::string why = named + failure.text();
    if (failure.unreachable && settings_.snooze_outages) {
      context.warn(why);
      return sluice::snooze(settings_.snooze_time);
    }
    const bool retried =
        std::any_of(settings_.retried_errors.begin(), settings_.retried_errors.end(),
                    [&](const std::string& pattern) { return publishing::matches(pattern, failure.code); });
    return failure.temporary || failure.unreachable || retried ? sluice::retry(why) : sluice::reject(why);
  }

  const sns::Settings settings_;
  const publishing::Routes routes_;
  const publishing::Identity identity_;
  const std::unique_ptr<Parts> parts_;
};

}  // namespace

SLUICE_PLUGIN("sns", "1.0.0", Sns)
