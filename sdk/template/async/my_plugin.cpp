#include <cctype>
#include <chrono>
#include <sluice/handler.hpp>
#include <string>

/// Logs the body of each message in capitals, after a pause in which it holds no thread.
class MyPlugin {
 public:
  static constexpr const char* help = "Logs the body of each message in capitals.";
  static constexpr sluice::OptionSpec options[] = {
      sluice::option<std::string>("suffix", "!", "What to put behind the text."),
      sluice::option<std::chrono::milliseconds>("pause", "0ms", "How long to rest before each message."),
  };

  explicit MyPlugin(const sluice::Options& values)
      : suffix_(values.get<std::string>("suffix")), pause_(values.duration("pause")) {}

  // A coroutine: message and context live until it returns. It must never block the thread that runs it.
  sluice::Task<sluice::Outcome> handle(const sluice::Message& message, sluice::AsyncContext& context) const {
    if (message.body().empty()) {
      co_return sluice::reject("the body is empty");
    }
    const bool stops = co_await context.sleep(pause_);  // gcc 12.2 wants it outside of the condition
    if (stops) {
      co_return sluice::release();
    }
    std::string text(message.body());
    for (char& c : text) {
      c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    }
    context.info(text + suffix_);
    co_return sluice::done();
  }

 private:
  std::string suffix_;
  std::chrono::nanoseconds pause_;
};

SLUICE_PLUGIN("my_plugin", "1.0.0", MyPlugin)
