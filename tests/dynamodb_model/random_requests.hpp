#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tests/dynamodb_model/backend.hpp"

namespace sluice::test::model {

/// Attribute values.
inline boost::json::object text(const std::string& value) { return {{"S", value}}; }
inline boost::json::object numeric(long long value) { return {{"N", std::to_string(value)}}; }

/// Requests by chance: mostly such as this product makes, some that DynamoDB refuses. Few keys, so that they meet.
class RandomRequests {
 public:
  explicit RandomRequests(std::uint64_t seed) : engine_(seed) {}

  /// The tables that requests are about: "jobs", like a DynamoMQ queue, and "rows", with a numeric sort key and an
  /// index of keys alone.
  static std::vector<Question> tables();
  Question next();

 private:
  std::size_t below(std::size_t bound) { return engine_() % bound; }
  bool chance(int percent) { return below(100) < static_cast<std::size_t>(percent); }
  template <typename T>
  T one_of(std::initializer_list<T> choices) {
    return *(choices.begin() + below(choices.size()));
  }

  std::string id();
  boost::json::object job_key();
  boost::json::object row_key();
  boost::json::object job();
  boost::json::object row();
  boost::json::value number();
  boost::json::value value();
  std::string blob();

  void add_condition(boost::json::object& body);
  void spoil(Question& question);

  Question put();
  Question update();
  Question remove();
  Question get();
  Question query_index();
  Question query_rows();
  Question scan();
  Question batch_get();
  Question batch_write();
  Question transact_write();
  Question transact_get();
  Question statements();
  Question statement();

  boost::json::object one_statement(const std::string& id);

  std::mt19937_64 engine_;
};

}  // namespace sluice::test::model
