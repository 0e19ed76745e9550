#pragma once

#include <boost/json.hpp>
#include <memory>
#include <string>

#include "dynamo/transport/curl_transport.hpp"
#include "tests/support/dynamodb_model/model.hpp"
#include "tests/support/emulator.hpp"

namespace sluice::test::model {

/// One request, and what came back, in a spelling that does not depend on who answered.
struct Question {
  std::string operation;
  boost::json::object body;
};
struct Reaction {
  int status = 0;
  std::string error;         ///< DynamoDB's name without its prefix
  std::string message;       ///< for people; not compared
  boost::json::object body;  ///< numbers canonical, sets sorted
};

/// Whoever answers: the model or the emulator.
class Backend {
 public:
  Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  virtual ~Backend() = default;
  Reaction ask(const Question& question);

 protected:
  virtual dynamo::HttpResponse send(const std::string& operation, const std::string& body) = 0;
};

class ModelBackend final : public Backend {
 public:
  explicit ModelBackend(std::uint64_t seed) : model_(clock_, seed) {}

 private:
  dynamo::HttpResponse send(const std::string& operation, const std::string& body) override;
  SystemClock clock_;
  Model model_;
};

class EmulatorBackend final : public Backend {
 public:
  explicit EmulatorBackend(const Emulator& emulator);

 private:
  dynamo::HttpResponse send(const std::string& operation, const std::string& body) override;
  SystemClock clock_;
  std::string endpoint_;
  dynamo::CurlTransport transport_{clock_};
};

/// Objects with members sorted, sets sorted, numbers as DynamoDB stores them: equal answers become equal texts.
boost::json::value normalised(const boost::json::value& value);
std::string text_of(const boost::json::value& value);

}  // namespace sluice::test::model
