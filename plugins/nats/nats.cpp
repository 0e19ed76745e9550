// Publishes each message to a subject of NATS JetStream.

#include <algorithm>
#include <memory>
#include <sluice/handler.hpp>
#include <string>
#include <variant>

#include "broker.hpp"
#include "publishing/text.hpp"
#include "publishing/routes.hpp"
#include "settings.hpp"
#include "subject.hpp"

namespace {

/// What JetStream says of the message itself, so that the same one never fits: too large, or with too large headers.
bool is_about_the_message(int code) { return code == 10054 || code == 10097; }

/// A value as a header can carry it.
std::string header_value(std::string_view text) {
  std::string value(text);
  std::replace_if(value.begin(), value.end(), &publishing::is_control, ' ');
  return value;
}

// `handle` is const: one instance serves all workers over one connection, with one message in flight for each.
class Nats {
 public:
  static constexpr const char* help =
      "Publishes each message to a subject of NATS JetStream, and is done when a stream has stored it.";
  static constexpr auto options = publishing::both(
      Settings::kOptions, publishing::both(publishing::Routes::kOptions, publishing::Identity::kOptions));

  Nats(const sluice::Options& values, sluice::Host host)
      : settings_(Settings::read(values, host.job())),
        routes_(values, {"nats"}, "subject"),
        identity_(values, host.job()),
        broker_(std::make_unique<Broker>(settings_, host)) {}

  sluice::Outcome handle(const sluice::Message& message, sluice::Context& context) const {
    const publishing::Envelope envelope = identity_.envelope(message);
    if (routes_.skips(envelope.event)) {
      return sluice::discard("the event \"" + publishing::one_line(envelope.event) + "\" is in skip_events");
    }
    const auto target = routes_.find(envelope);
    if (const auto* nowhere = std::get_if<publishing::Unroutable>(&target)) {
      return routes_.without_destination(*nowhere);
    }
    const std::string_view id = settings_.append_id ? envelope.id : std::string_view();
    const auto subject = subject_of(std::get<publishing::Target>(target).name, id, settings_.encode_subjects);
    if (const auto* bad = std::get_if<BadSubject>(&subject)) {
      return sluice::reject(bad->reason);
    }
    if (context.stop_requested()) {
      return sluice::release();
    }
    Publication publication = publication_of(message, envelope);
    publication.subject = std::get<std::string>(subject);
    return judge(broker_->publish(publication, context), publication.subject, context);
  }

 private:
  Publication publication_of(const sluice::Message& message, const publishing::Envelope& envelope) const {
    Publication publication;
    publication.body = message.body();
    if (settings_.message_id == Settings::MessageId::row) {
      publication.id = header_value(envelope.unique_id());
    } else if (settings_.message_id == Settings::MessageId::payload) {
      publication.id = publishing::sha256_hex(message.body());
    }
    if (!envelope.event.empty()) {
      publication.headers.emplace_back("Event", header_value(envelope.event));
    }
    publication.headers.emplace_back("Producer", header_value(envelope.producer));
    for (const std::string& name : settings_.attributes) {
      if (const auto value = message.attribute(name)) {
        publication.headers.emplace_back(name, header_value(*value));
      }
    }
    return publication;
  }

  sluice::Outcome judge(const Answer& answer, std::string_view subject, const sluice::Context& context) const {
    const std::string named = "NATS, subject \"" + publishing::one_line(subject) + "\": ";
    switch (answer.end) {
      case Answer::End::stored:
        return sluice::done();
      case Answer::End::stopped:
        return context.time_left() <= std::chrono::nanoseconds::zero()
                   ? sluice::retry("no server of NATS answered within the job's timeout")
                   : sluice::release();
      case Answer::End::too_large:
        return sluice::reject(named + "the message is too large: " + answer.text);
      case Answer::End::refused: {
        const std::string why =
            named + "JetStream refused it: " + answer.text + " (error " + std::to_string(answer.code) + ")";
        return is_about_the_message(answer.code) ? sluice::reject(why) : sluice::retry(why);
      }
      case Answer::End::not_permitted:
        return sluice::retry(named + "the user may not publish there: " + answer.text);
      case Answer::End::no_stream:
        return sluice::retry(named + answer.text);
      case Answer::End::unreachable:
        return unreachable(answer, context);
      case Answer::End::lost:
        return sluice::retry(named + "the connection broke before the acknowledgement: " + answer.text);
      case Answer::End::timed_out:
        break;
    }
    return sluice::retry(named + "no acknowledgement within " + std::to_string(settings_.timeout.count()) +
                         " ms; the stream may have it all the same, and takes it once");
  }

  sluice::Outcome unreachable(const Answer& answer, const sluice::Context& context) const {
    const std::string why =
        "no server of NATS is connected: " + (answer.text.empty() ? std::string("none answers") : answer.text);
    if (!settings_.snooze_outages) {
      return sluice::retry(why);
    }
    context.warn(why);
    return sluice::snooze(settings_.reconnect_wait);
  }

  const Settings settings_;
  const publishing::Routes routes_;
  const publishing::Identity identity_;
  const std::unique_ptr<Broker> broker_;
};

}  // namespace

SLUICE_PLUGIN("nats", "1.0.0", Nats)
