// A plugin for the tests of `sluice try`, `replay` and `dev`: it does what a message says. Built twice, so that there
// is an older and a newer build of it.
#include <csignal>
#include <sluice/handler.hpp>
#include <stdexcept>
#include <string>

struct Act {
  static constexpr const char* help = "Does what the body says.";
  static constexpr sluice::OptionSpec options[] = {
      sluice::required<std::string>("tag", "What its lines begin with"),
      sluice::option<std::int64_t>("times", "1", "How often it says so"),
  };
  explicit Act(const sluice::Options& values)
      : tag(values.get<std::string>("tag")), times(values.get<std::int64_t>("times")) {
    if (tag == "refuse") {
      throw std::invalid_argument("refuse is no tag");
    }
  }

  sluice::Outcome handle(const sluice::Message& message, sluice::Context& context) const {
    const std::string body(message.body());
    for (std::int64_t i = 0; i < times; ++i) {
      context.info(tag + " " DESK_VERSION " " + body);
    }
    if (body == "crash") {
      std::raise(SIGSEGV);
    }
    if (body == "throw") {
      throw std::runtime_error("it broke");
    }
    if (body == "retry") {
      return sluice::retry(std::chrono::seconds(7), "not now");
    }
    if (body == "soon") {
      return message.attempt() > 1 ? sluice::done() : sluice::retry(std::chrono::milliseconds(1), "once more");
    }
    if (body == "reject") {
      return sluice::reject("never");
    }
    if (body == "send") {
      context.send("receipts", "paid");
    }
    return sluice::done();
  }

  std::string tag;
  std::int64_t times;
};

SLUICE_PLUGIN("desk", DESK_VERSION, Act)
