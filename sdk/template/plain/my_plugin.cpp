#include <cctype>
#include <chrono>
#include <sluice/handler.hpp>
#include <string>

/// Logs the body of each message in capitals.
class MyPlugin {
 public:
  static constexpr const char* help = "Logs the body of each message in capitals.";
  static constexpr sluice::OptionSpec options[] = {
      sluice::option<std::string>("suffix", "!", "What to put behind the text."),
      sluice::option<std::chrono::milliseconds>("pause", "0ms", "How long to rest before each message."),
  };

  explicit MyPlugin(const sluice::Options& values)
      : suffix_(values.get<std::string>("suffix")), pause_(values.duration("pause")) {}

  // `const`: one instance serves all workers of a job. Without it, each worker has an instance of its own.
  sluice::Outcome handle(const sluice::Message& message, sluice::Context& context) const {
    if (message.body().empty()) {
      return sluice::reject("the body is empty");
    }
    if (context.wait_for_stop(pause_)) {
      return sluice::release();
    }
    std::string text(message.body());
    for (char& c : text) {
      c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    }
    context.info(text + suffix_);
    return sluice::done();
  }

 private:
  std::string suffix_;
  std::chrono::nanoseconds pause_;
};

SLUICE_PLUGIN("my_plugin", "1.0.0", MyPlugin)
