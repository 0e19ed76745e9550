#pragma once

#include <array>
#include <sluice/handler.hpp>
#include <string>
#include <string_view>

namespace publishing {

/// What is published beside the body: of the message where it has the attribute, else of the job. Borrows both.
struct Envelope {
  std::string_view type;    ///< where it wants to go: `aggregate_type`
  std::string_view id;      ///< what it is about: `aggregate_id`, else the message's group; may be empty
  std::string_view event;   ///< may be empty
  std::string_view source;  ///< the queue or outbox that it comes from
  std::string_view row;     ///< its id there
  std::string_view producer;
  std::string_view source_id;  ///< of an outbox: its table's own id; otherwise empty

  /// Its name among all messages of all jobs, the same at each attempt and on every host: "source_id/row" of an outbox,
  /// else "producer/source/row".
  std::string unique_id() const;
};

/// What a job says for messages that do not say it themselves. A value.
class Identity {
 public:
  static constexpr std::array<sluice::OptionSpec, 3> kOptions = {
      sluice::option<std::string>("producer",
                                  "Who publishes, where the message has no attribute \"producer\"; default: "
                                  "the job's name."),
      sluice::option<std::string>("event", "The kind of event, where the message has no attribute \"event\"."),
      sluice::option<std::string>("aggregate_type",
                                  "The type that routes are chosen by, where the message has no such attribute."),
  };

  Identity(const sluice::Options& options, std::string_view job);
  Envelope envelope(const sluice::Message& message) const;

 private:
  std::string producer_;
  std::string event_;
  std::string type_;
};

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
/// The value of an option that has to be one of these words.
std::string one_of(const sluice::Options& options, const char* name, std::initializer_list<std::string_view> words);
/// A duration from `least` to `most`.
std::chrono::milliseconds bounded(const sluice::Options& options, const char* name, std::chrono::milliseconds least,
                                  std::chrono::milliseconds most);

}  // namespace publishing
