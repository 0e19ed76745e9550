// Sends each message on to another queue, in the transaction that ends it where the two share one.

#include <sluice/handler.hpp>
#include <string>
#include <variant>
#include <vector>

#include "publishing/publishing.hpp"

namespace {

class Queue {
 public:
  static constexpr std::array<sluice::OptionSpec, 4> kOwnOptions = {
      sluice::option<std::string>("queue", "Where messages go for which neither a rule nor their type says it."),
      sluice::option<std::vector<std::string>>(
          "attributes", R"(["*"])", "The attributes that go along, by name; * stands for any text. None: []."),
      sluice::option<bool>("group", "true", "Give the message the aggregate id as its group."),
      sluice::option<std::chrono::nanoseconds>("delay", "0s", "Not to be had before this has passed."),
  };
  static constexpr bool only_sends = true;
  static constexpr const char* help =
      "Sends each message on to a queue: one of the same store, in one transaction with the end of the message; a row "
      "of an outbox to any, at least once, by its own name.";
  static constexpr auto options = publishing::both(kOwnOptions, publishing::Routes::kOptions);

  Queue(const sluice::Options& values, sluice::Host host)
      : routes_(values, {"queue", "sqs"}, "queue", host.job()),
        attributes_(values.list("attributes")),
        keeps_group_(values.get<bool>("group")),
        delay_(values.duration("delay")) {}

  sluice::Outcome handle(const sluice::Message& message, sluice::Context& context) const {
    const publishing::Envelope envelope = routes_.envelope(message);
    const auto target = routes_.find(envelope, context);
    if (const auto* end = std::get_if<sluice::Outcome>(&target)) {
      return *end;
    }
    send(std::get<publishing::Target>(target).name, message, envelope, context);
    return sluice::done();
  }

 private:
  void send(const std::string& queue, const sluice::Message& message, const publishing::Envelope& envelope,
            sluice::Context& context) const {
    auto&& sent = context.send(queue, message.body());
    sent.content_type(message.content_type()).delay(delay_);
    if (context.store() == sluice::Store::none) {
      sent.dedup_id(envelope.unique_id());  // it may be sent again before the row is marked
    }
    if (keeps_group_ && !envelope.id.empty()) {
      sent.group(envelope.id);
    }
    for (const auto [name, value] : message.attributes()) {
      if (publishing::matches_any(attributes_, name)) {
        sent.attribute(name, value);
      }
    }
    if (!envelope.event.empty() && !message.attribute("event")) {
      sent.attribute("event", envelope.event);
    }
  }

  const publishing::Routes routes_;
  const std::vector<std::string> attributes_;
  const bool keeps_group_;
  const std::chrono::nanoseconds delay_;
};

}  // namespace

SLUICE_PLUGIN("queue", "1.0.0", Queue)
