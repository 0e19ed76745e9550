#include "publishing/envelope.hpp"

#include <algorithm>
#include <stdexcept>

namespace publishing {

std::string Envelope::unique_id() const {
  std::string text(source_id);
  if (source_id.empty()) {
    text += producer;
    text += '/';
    text += source;
  }
  text += '/';
  text += row;
  return text;
}

Identity::Identity(const sluice::Options& options, std::string_view job)
    : producer_(options.get<std::string>("producer", std::string(job))),
      event_(options.get("event", "")),
      type_(options.get("aggregate_type", "")) {}

Envelope Identity::envelope(const sluice::Message& message) const {
  return {message.attribute("aggregate_type", type_),
          message.attribute("aggregate_id", message.group()),
          message.attribute("event", event_),
          message.queue(),
          message.id(),
          message.attribute("producer", producer_),
          message.attribute("source_id", {})};
}

void refuse(const std::string& option, const std::string& why) {
  throw std::invalid_argument("the option \"" + option + "\" " + why);
}

std::string one_of(const sluice::Options& options, const char* name, std::initializer_list<std::string_view> words) {
  auto value = options.get<std::string>(name);
  if (std::find(words.begin(), words.end(), value) == words.end()) {
    std::string known;
    for (const std::string_view word : words) {
      known += known.empty() ? "\"" : ", \"";
      known += std::string(word) + "\"";
    }
    refuse(name, "must be one of " + known + "; it is \"" + value + "\"");
  }
  return value;
}

std::chrono::milliseconds bounded(const sluice::Options& options, const char* name, std::chrono::milliseconds least,
                                  std::chrono::milliseconds most) {
  const auto value = options.get<std::chrono::milliseconds>(name);
  if (value < least || value > most) {
    refuse(name,
           "must be from " + std::to_string(least.count()) + "ms to " + std::to_string(most.count() / 1000) + "s");
  }
  return value;
}

}  // namespace publishing
