#include <sluice/handler.hpp>
#include <span>
#include <string>
#include <vector>

/// Logs the bodies of a batch of messages in one line.
class MyPlugin {
 public:
  static constexpr const char* help = "Logs the bodies of a batch of messages in one line.";
  static constexpr sluice::OptionSpec options[] = {
      sluice::option<std::string>("separator", ", ", "What to put between two bodies."),
  };

  explicit MyPlugin(const sluice::Options& values) : separator_(values.get<std::string>("separator")) {}

  // An outcome for each message, in their order. What is thrown fails the whole batch.
  // `const`: one instance serves all workers of a job. Without it, each worker has an instance of its own.
  std::vector<sluice::Outcome> handle(std::span<const sluice::Message> messages, sluice::BatchContext& batch) const {
    std::vector<sluice::Outcome> outcomes;
    std::string line;
    for (const sluice::Message& message : messages) {
      if (message.body().empty()) {
        outcomes.push_back(sluice::reject("the body is empty"));
        continue;
      }
      line += line.empty() ? "" : separator_;
      line += message.body();
      outcomes.push_back(sluice::done());
    }
    batch.context(0).info(line);
    return outcomes;
  }

 private:
  std::string separator_;
};

SLUICE_PLUGIN("my_plugin", "1.0.0", MyPlugin)
