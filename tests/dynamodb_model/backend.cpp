#include "tests/dynamodb_model/backend.hpp"

#include <algorithm>
#include <future>
#include <stdexcept>
#include <vector>

#include "tests/dynamodb_model/model_rig.hpp"
#include "tests/support/dynamodb_model/failure.hpp"
#include "tests/support/dynamodb_model/numbers.hpp"

namespace sluice::test::model {

namespace json = boost::json;

json::value normalised(const json::value& value) {
  if (const auto* array = value.if_array()) {
    json::array out;
    for (const json::value& element : *array) {
      out.push_back(normalised(element));
    }
    return out;
  }
  const auto* object = value.if_object();
  if (object == nullptr) {
    return value.is_int64() || value.is_uint64() ? json::value(value.to_number<double>()) : value;
  }
  std::vector<std::string> names;
  for (const auto& member : *object) {
    names.emplace_back(member.key().data(), member.key().size());
  }
  std::sort(names.begin(), names.end());
  json::object out;
  for (const std::string& name : names) {
    json::value member = normalised(object->at(name));
    if (name == "N" && member.is_string()) {
      member = canonical_number(std::string(member.as_string()));
    } else if ((name == "SS" || name == "NS" || name == "BS") && member.is_array()) {
      std::sort(member.as_array().begin(), member.as_array().end(),
                [](const json::value& a, const json::value& b) { return a.as_string() < b.as_string(); });
    }
    out[name] = std::move(member);
  }
  return out;
}

std::string text_of(const json::value& value) { return json::serialize(value); }

Reaction Backend::ask(const Question& question) {
  const dynamo::HttpResponse response = send(question.operation, json::serialize(question.body));
  Reaction out;
  out.status = response.status;
  json::error_code problem;
  const json::value body = json::parse(response.body, problem);
  if (problem || !body.is_object()) {
    throw std::runtime_error("no JSON: " + response.body);
  }
  out.body = normalised(body).as_object();
  if (response.status != 200) {
    const std::string type(out.body.at("__type").as_string());
    out.error = type.substr(type.find('#') + 1);
    for (const char* name : {"message", "Message"}) {
      if (const auto* text = out.body.if_contains(name)) {
        out.message = std::string(text->as_string());
      }
      out.body.erase(name);
    }
    out.body.erase("__type");
  }
  return out;
}

dynamo::HttpResponse ModelBackend::send(const std::string& operation, const std::string& body) {
  return model_.handle(request_of(operation, body)).response;
}

EmulatorBackend::EmulatorBackend(const Emulator& emulator) : endpoint_(emulator.endpoint()) { transport_.start(); }

dynamo::HttpResponse EmulatorBackend::send(const std::string& operation, const std::string& body) {
  dynamo::HttpRequest request = request_of(operation, body);
  request.url = endpoint_;
  request.headers.emplace_back("X-Amz-Date", "20260102T030405Z");
  std::promise<dynamo::HttpResult> answer;
  transport_.send(std::move(request), Deadline::after(clock_, std::chrono::seconds(20)),
                  [&](dynamo::HttpResult result) { answer.set_value(std::move(result)); });
  dynamo::HttpResult result = answer.get_future().get();
  if (!result) {
    throw std::runtime_error("the emulator does not answer: " + result.error().message);
  }
  return std::move(*result);
}

}  // namespace sluice::test::model
